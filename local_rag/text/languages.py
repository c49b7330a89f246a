"""Tell the language of a text by its script and its function words, which is enough to choose a stemmer."""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

ENGLISH = "english"
_SAMPLE = 4000  # characters of a document that are looked at
_FEWEST = 2  # function words that tell a language: one may be a name, as in "Las Palmas"
_LAST_LATIN = "\u036f"
_LATIN = re.compile(r"[^\W\d_]+")

# By the name of the Snowball algorithm. Words of one language that are frequent in another are in both, or in none.
_WORDS = """
english: the of and to in is that for it on with as are this be by or not a an at from have has was were what when
  where which who how do does did can i my you your we our will would should must may if no into there their they he
  she his her but than then me so been after before between
german: der die das den dem des ein eine einen einem einer und ist sind war wird werden nicht mit von für auf aus bei
  nach zu zum zur im wie wer was wann wo warum welche welcher welches wieviel viel viele ich mein meine man muss darf
  kann oder auch sich hat haben wenn über durch womit dass es sie wir als noch
french: le la les des du un une et est sont était pas ne avec pour sur dans par que qui quoi quel quelle quels quelles
  quand où comment combien pourquoi je mon ma mes il elle nous vous ce cette ces ou au aux en de à se son sa ses plus
  doit peut faut être avoir lors après avant entre chez sous
spanish: el la los las un una unos unas y es son era no con para por de del al en que qué quién cuál cuándo cómo dónde
  cuánto cuánta cuántos cuántas se su sus lo le yo mi mis hay está están ser tiene más como si sobre desde hasta entre
  cuando antes después día debe puede
italian: il lo la i gli le un uno una e è sono era non con di da del della dei delle degli nel nella al alla che chi
  cosa quale quali quando come dove quanto quanta quanti quante si se su ha hanno mio mia più o anche deve può viene
  dal dalla sul sulla tra fra dopo prima ogni stato stata
portuguese: o a os as um uma e é são era não com de do da dos das em no na nos nas para por ao à que quem qual quais
  quando como onde quanto quanta quantos quantas se sua seu meu minha mais ou também deve pode foi ser tem até depois
  antes entre sobre pela pelo
dutch: de het een en is zijn was niet met van voor op uit bij naar te in hoe wie wat wanneer waar waarom welke hoeveel
  ik mijn men moet mag kan of ook zich heeft hebben als over door dat er wij je aan wordt om
swedish: och att det en ett är inte med av för på från till i hur vem vad när var vilken vilka många jag min man måste
  får kan eller också sig har den de som om över ska blir efter mellan
norwegian: og at det en et er ikke med av for på fra til i hvordan hvem hva når hvor hvilken hvilke mange jeg min man
  må får kan eller også seg har den de som om over skal blir etter mellom
danish: og at det en et er ikke med af for på fra til i hvordan hvem hvad hvornår hvor hvilken hvilke mange jeg min
  man må får kan eller også sig har den de som om over skal bliver efter mellem
finnish: ja on ei ole se että joka mikä mitä kuka milloin missä miten miksi kuinka paljon monta minä kun tai myös ovat
  oli jos niin kuin sekä mutta voi pitää täytyy
polish: i w na z do od za po o się nie jest są był była to ten ta te kto co kiedy gdzie jak dlaczego ile jaki jaka
  jakie jaką który która które mogę może musi lub oraz przez dla przy czy mój moja bez wszystkie podczas przed
czech: a v na z do od za po o se si ne je jsou byl byla to ten ta kdo co kdy kde jak proč kolik jaký jaká jaké který
  která které mohu může musí nebo pro při bez aby jako před mezi
hungarian: a az és nem van egy hogy ki mi mikor hol hogyan miért hány mennyi melyik vagy is kell lehet volt meg csak
  már ha mint után előtt
turkish: ve bir bu için ile da de mi ne kim nasıl neden nerede hangi kaç değil var yok olan olarak daha gibi sonra
  önce kadar ben
romanian: și este sunt un o de la în cu pe pentru din nu care ce cine când unde cum cât câte câți se să mai sau după
  înainte între fost trebuie poate
"""  # noqa: RUF001  letters of other languages look like English ones


def _read(table: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each language of a table with its words; a line that goes on is indented."""
    for entry in re.split(r"\n(?! )", table.strip()):
        language, _, words = entry.partition(":")
        yield language, frozenset(words.split())


FUNCTION_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(dict(_read(_WORDS)))
_LANGUAGES_OF = {
    word: [language for language, words in FUNCTION_WORDS.items() if word in words]
    for word in frozenset().union(*FUNCTION_WORDS.values())
}
_SCRIPTS = MappingProxyType(
    {"CYRILLIC": "russian", "GREEK": "greek", "ARABIC": "arabic", "DEVANAGARI": "hindi", "ARMENIAN": "armenian"}
    | {"TAMIL": "tamil", "CJK": "chinese", "HIRAGANA": "japanese", "KATAKANA": "japanese", "HANGUL": "korean"}
)
LANGUAGES = frozenset({*FUNCTION_WORDS, *_SCRIPTS.values()})


def language_of_word(word: str, around: str) -> str:
    """Return the language of a word in a text of the language `around`: another one if its script is."""
    return language_of(word) if word[:1] > _LAST_LATIN and around in FUNCTION_WORDS else around


def language_of(text: str) -> str:
    """Return the language of a text, English if nothing tells another.

    The names are those of the Snowball stemmers, and others for scripts that have none.
    """
    return _language_of(text[:_SAMPLE])


@functools.lru_cache(maxsize=1024)
def _language_of(text: str) -> str:
    foreign = [] if text.isascii() else [letter for letter in text if letter > _LAST_LATIN and letter.isalpha()]
    if foreign and 2 * len(foreign) > sum(map(str.isalpha, text)):
        scripts = Counter(unicodedata.name(character, "").partition(" ")[0] for character in foreign)
        if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0:
            return "japanese"
        return _SCRIPTS.get(scripts.most_common(1)[0][0], "unknown")
    counts = Counter[str]()
    for word, times in Counter(_LATIN.findall(text.lower())).items():
        for language in _LANGUAGES_OF.get(word, ()):
            counts[language] += times
    best = max(FUNCTION_WORDS, key=lambda language: counts[language])
    return best if counts[best] >= _FEWEST and counts[best] > counts[ENGLISH] else ENGLISH
