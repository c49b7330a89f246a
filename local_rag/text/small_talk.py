"""What people say to a program that is no question to documents: greetings, thanks, and what it can do."""

import re
from collections.abc import Mapping

_GREETINGS: Mapping[str, str] = {
    "english": "hi, hello, hey, hi there, hello there, good morning, good afternoon, good evening, good day, "
    "greetings, how are you",
    "german": "hallo, guten tag, guten morgen, guten abend, servus, moin, grüß gott, wie geht es dir",
    "french": "bonjour, bonsoir, salut, coucou, comment ça va",
    "spanish": "hola, buenos días, buenas tardes, buenas noches, qué tal",
    "italian": "ciao, buongiorno, buonasera, salve, come stai",
}
_THANKS: Mapping[str, str] = {
    "english": "thanks, thank you, thank you very much, many thanks, thanks a lot, thx, ok, okay, great, ok thanks, "
    "okay thanks, great thanks, ok thank you",
    "german": "danke, vielen dank, danke schön, dankeschön, super danke, ok danke",
    "french": "merci, merci beaucoup, merci bien, ok merci",
    "spanish": "gracias, muchas gracias, ok gracias",
    "italian": "grazie, grazie mille, molte grazie, ok grazie",
}
_FAREWELLS: Mapping[str, str] = {
    "english": "bye, goodbye, good bye, good night, see you, bye bye",
    "german": "tschüss, tschüß, auf wiedersehen, gute nacht, bis bald",
    "french": "au revoir, bonne nuit, à bientôt",
    "spanish": "adiós, hasta luego, hasta pronto",
    "italian": "arrivederci, buonanotte, a presto",
}
_ABILITIES: Mapping[str, str] = {
    "english": "what can you do, what can you do for me, what do you do, how can you help, how can you help me, "
    "what can you help me with, what can i ask, what can i ask you, what can i ask here, what can i do here, "
    "who are you, what are you, what do you know, help me",
    "german": "was kannst du, was kannst du tun, was kannst du alles, was können sie, was können sie tun, "
    "was kann ich fragen, was kann ich dich fragen, was kann ich hier fragen, wer bist du, wer sind sie, "
    "wie kannst du mir helfen",
    "french": "que peux tu faire, que pouvez vous faire, que sais tu faire, qui es tu, qui êtes vous, "
    "que puis je demander",
    "spanish": "qué puedes hacer, qué sabes hacer, quién eres, qué puedo preguntar",
    "italian": "che cosa puoi fare, cosa puoi fare, cosa sai fare, chi sei, che cosa posso chiedere",
}
_SAID = {
    "greeting": {
        "english": "Hello. Ask something that the documents may answer.",
        "german": "Hallo. Fragen Sie etwas, das in den Dokumenten stehen könnte.",
        "french": "Bonjour. Posez une question à laquelle les documents peuvent répondre.",
        "spanish": "Hola. Pregunte algo que los documentos puedan responder.",
        "italian": "Buongiorno. Chieda qualcosa a cui i documenti possano rispondere.",
    },
    "thanks": {
        "english": "You are welcome.",
        "german": "Gern geschehen.",
        "french": "Je vous en prie.",
        "spanish": "De nada.",
        "italian": "Prego.",
    },
    "farewell": {
        "english": "Goodbye.",
        "german": "Auf Wiedersehen.",
        "french": "Au revoir.",
        "spanish": "Adiós.",
        "italian": "Arrivederci.",
    },
    "abilities": {
        "english": "I answer questions from the documents of this library, on this machine, and name the passage that "
        "each sentence stands on. Ask for a fact, ask on about an answer, let me count or list what documents mention, "
        "or compare versions of a document. Where the documents do not answer, I say so or quote what comes closest.",
        "german": "Ich beantworte Fragen aus den Dokumenten dieser Bibliothek, auf diesem Rechner, und nenne zu jedem "
        "Satz die Stelle, auf der er beruht. Fragen Sie nach einer Tatsache, fragen Sie nach, lassen Sie zählen "
        "oder auflisten, was Dokumente erwähnen, oder Fassungen vergleichen. Wo die Dokumente nichts sagen, sage "
        "ich das oder zitiere, was am nächsten kommt.",
        "french": "Je réponds à partir des documents de cette bibliothèque, sur cette machine, et "
        "j'indique le passage sur lequel repose chaque phrase. Demandez un fait, poursuivez, faites compter ou lister "
        "ce que mentionnent les documents, ou comparer des versions. Si les documents ne répondent pas, je le dis.",
        "spanish": "Respondo a partir de los documentos de esta biblioteca, en esta máquina, y digo en qué "
        "pasaje se apoya cada frase. Pregunte por un hecho, siga preguntando, haga contar o listar lo que mencionan "
        "los documentos, o comparar versiones. Si los documentos no responden, lo digo.",
        "italian": "Rispondo in base ai documenti di questa raccolta, su questa macchina, e indico il passo su cui "
        "poggia ogni frase. Chieda un fatto, continui a chiedere, faccia contare o elencare ciò che i documenti "
        "menzionano, o confrontare versioni. Se i documenti non rispondono, lo dico.",
    },
}


def _known() -> dict[str, str]:
    """Return the reply to each phrase; one that two languages share is answered in the first of them."""
    replies = dict[str, str]()
    kinds = (("greeting", _GREETINGS), ("thanks", _THANKS), ("farewell", _FAREWELLS), ("abilities", _ABILITIES))
    for kind, phrases in kinds:
        for language, listed in phrases.items():
            for phrase in listed.split(", "):
                replies.setdefault(phrase, _SAID[kind][language])
    return replies


_REPLIES = _known()
_ADDRESSED = {phrase for listed in _GREETINGS.values() for phrase in listed.split(", ")}
_LONGEST = 2 * max(map(len, _REPLIES))


def reply_to_small_talk(text: str) -> str | None:
    """Return the program's own reply to what is no question to documents; None for any other text.

    The whole text must be such a phrase, perhaps behind a greeting, so a question is never taken for one.
    """
    if len(text) > _LONGEST:
        return None
    words = " ".join(re.findall(r"\w+", text.lower().replace("'", " ")))
    if words in _REPLIES:
        return _REPLIES[words]
    greeted = max((phrase for phrase in _ADDRESSED if words.startswith(f"{phrase} ")), key=len, default="")
    return _REPLIES.get(words[len(greeted) + 1 :]) if greeted else None
