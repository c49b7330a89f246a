"""Say the few sentences of the program itself in the language of the question."""

from collections.abc import Mapping
from types import MappingProxyType

from local_rag.index.languages import language_of

_TRANSLATIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "The documents do not answer this question.": {
            "german": "Die Dokumente beantworten diese Frage nicht.",
            "french": "Les documents ne répondent pas à cette question.",
            "spanish": "Los documentos no responden a esta pregunta.",
            "italian": "I documenti non rispondono a questa domanda.",
            "portuguese": "Os documentos não respondem a esta pergunta.",
            "dutch": "De documenten beantwoorden deze vraag niet.",
            "swedish": "Dokumenten besvarar inte den här frågan.",
            "norwegian": "Dokumentene svarer ikke på dette spørsmålet.",
            "danish": "Dokumenterne besvarer ikke dette spørgsmål.",
            "finnish": "Asiakirjat eivät vastaa tähän kysymykseen.",
            "polish": "Dokumenty nie odpowiadają na to pytanie.",
            "russian": "Документы не отвечают на этот вопрос.",
            "chinese": "文档没有回答这个问题。",
            "japanese": "文書にはこの質問への答えがありません。",
        },
        "Not sure. This is what the documents say:": {
            "german": "Nicht sicher. Das sagen die Dokumente:",
            "french": "Sans certitude. Voici ce que disent les documents :",
            "spanish": "No es seguro. Esto dicen los documentos:",
            "italian": "Non è certo. Ecco che cosa dicono i documenti:",
            "portuguese": "Sem certeza. Isto é o que dizem os documentos:",
            "dutch": "Niet zeker. Dit zeggen de documenten:",
            "swedish": "Osäkert. Så här säger dokumenten:",
            "norwegian": "Usikkert. Dette sier dokumentene:",
            "danish": "Usikkert. Dette siger dokumenterne:",
            "finnish": "Ei varmaa. Asiakirjat sanovat näin:",
            "polish": "Nie ma pewności. Oto co mówią dokumenty:",
            "russian": "Точно неизвестно. Вот что говорится в документах:",
            "chinese": "不能确定。文档中这样写道\uff1a",
            "japanese": "確かではありません。文書には次のようにあります\uff1a",
        },
    }
)


def translated(sentence: str, question: str) -> str:
    """Return a sentence of the program in the language of a question, in English if it is not known in that one."""
    return _TRANSLATIONS.get(sentence, {}).get(language_of(question), sentence)
