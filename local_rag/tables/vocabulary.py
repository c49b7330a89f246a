"""The closed lists of ordinary words by which a question is read: operations, times, what columns are called."""

from local_rag.text.tokens import key_of_word


def keys_of(words: str) -> frozenset[str]:
    """Return words in the form in which they are compared."""
    return frozenset(map(key_of_word, words.split()))


# Words that mean the same in the names of columns and in questions.
_SYNONYMS = """price cost rate fee charge; amount value worth sum net; revenue turnover sales income net amount;
    spend spent spending expense expenses expenditure cost paid net amount; customer client buyer;
    supplier vendor provider; employee person people staff worker colleague consultant member name headcount everyone;
    department team division dept; quantity qty units pieces unit; product item article goods; country nation land;
    city town location place office site; hours hour time; category type kind class; status state;
    salary pay wage wages earnings compensation earn; stock inventory hand; invoice bill; task activity; project job;
    budget planned plan; actual spent; manager boss head lead supervisor; phone telephone; email mail;
    region area territory; start begin began join joined hired since; end finish expire expiry expiration;
    due deadline; location address"""
_GROUPS = [keys_of(group) for group in _SYNONYMS.split(";")]
SYNONYMS: dict[str, frozenset[str]] = {
    word: frozenset().union(*(group for group in _GROUPS if word in group)) for group in _GROUPS for word in group
}

# Names of columns in other languages, and the English word for each.
_TRANSLATED = """employee: mitarbeiter mitarbeiterin mitarbeitende; customer: kunde kundin;
    supplier: lieferant fournisseur; hours: stunden arbeitsstunden heures; quantity: menge anzahl stuckzahl stueckzahl
    quantite; amount: betrag montant; price: preis einzelpreis stuckpreis prix; net: netto; gross: brutto;
    project: projekt projet; product: produkt produit; article: artikel; date: datum; region: gebiet;
    country: staat; city: stadt ville; invoice: rechnung rechnungen rechnungsnummer facture;
    order: bestellung bestellungen auftrag auftrage auftraege auftragsnummer; sales: umsatz umsaetze
    verkaufe verkaeufe ventes; due: fallig faellig falligkeit faelligkeit echeance; salary: gehalt salaire;
    department: abteilung; billable: abrechenbar; paid: bezahlt;
    cost: kosten cout; stock: bestand lagerbestand; delivered: geliefert; category: kategorie;
    task: aufgabe; year: jahr annee; month: monat; total: gesamt; tax: steuer; number: nummer numero;
    timesheet: stundenzettel; cancelled: storniert; open: offen; reimbursed: rembourse erstattet;
    location: standort lieu; country: land pays; name: nom; status: statut; delivery date: lieferdatum;
    invoice date: rechnungsdatum; order date: bestelldatum auftragsdatum; due date: falligkeitsdatum;
    start: beginn debut eintritt eintrittsdatum; end: ende; discount: rabatt remise; vat: mwst tva;
    weight: gewicht poids;
    colour: farbe couleur; model: modell modele; driver: fahrer chauffeur; mileage: kilometerstand; plate: kennzeichen;
    priority: prioritat; assignee: bearbeiter; description: beschreibung bezeichnung designation; room: raum salle;
    account: konto compte; payment: zahlung paiement; expenses: spesen frais;
    expense: ausgabe ausgaben depense depenses;
    branch: filiale; order: commande commandes; shipped: versandt versendet expedie; returned: zuruckgegeben retourne;
    approved: genehmigt approuve; fee: gebuhr gebuehr; return: ruckgabe retour rendu; loan: ausleihe leihschein;
    minimum stock: mindestbestand;
    delivered: livre livree livraison lieferung; cancelled: annule annulee; paid: paye payee; waiting: wartend;
    closed: geschlossen erledigt ferme; unit: einheit; share: anteil"""
# Forms of verbs that name what was done, beside those that end with "ed".
DONE = frozenset("paid sent sold bought built done given taken made held written shut met begun left gone quit".split())  # noqa: SIM905
TRANSLATED: dict[str, tuple[str, ...]] = {
    key_of_word(word): tuple(map(key_of_word, english.split()))
    for group in _TRANSLATED.split(";")
    for english, _, words in [group.strip().partition(":")]
    for word in words.split()
}
# What the cells of a column say that answers a question by yes or no.
YES = frozenset("yes y true ja j oui o x \u2713 \u2714 si wahr vrai".split())  # noqa: SIM905
NO = frozenset("no n false nein non - \u2717 \u2718 falsch faux none".split())  # noqa: SIM905

# Verbs that tell which column is measured where none is named.
MONEY_WORDS = keys_of(
    """spend spent spending cost costs pay paid earn earned earns charge charged worth revenue turnover money bill
    billed invoiced price expensive cheap amount sales sell sold value income expense expenses budget salary order"""
)
# What a question may hold beside names, values and operations without meaning anything else.
SMALL_WORDS = keys_of(
    """a an and are as at be by did do does done for from had has have he her his how i in is it its me my
        of on or our she so that the their them then there these they this those to was we were what when
        where which who whom whose will with would you your can could should may please tell show give find
        get got say said need want know see look calculate compute out list name names all any some every
        both us one ones s t d than between versus vs compared comparison however there's
        """
)
FILLERS = (
    SMALL_WORDS
    | keys_of(
        """place placed make made record recorded records listed contain contains include included
        including         appear appears held hold exist exists sold sell bought buy buys ordered order orders log
        logged book
        booked issued issue sent send received receive delivered worked works work spend spent spends pay
        pays cost costs charge charged earn earns earned go went going come came take took taken use used
        run ran billed bill belong belongs report reported table sheet spreadsheet file rows row entries
        entry lines line data document column overview worksheet workbook csv according here currently now
        altogether together overall in all during within over throughout into amount amounts much many more
        than total totals sum whole entire complete combined add added up number count times often average
        mean value values figure level high low single just only exactly again also each per individual
        respective so far fall falls fell been being about around whats what's many's let lets hi hello
        thanks thank you kindly live lives living based located
        quickly ok i'd like coming come come's come's stand stands recorded put down were's came per's
        there's company companies arrive arrived arrives bring brought deliver supply supplied supplies
        purchase purchased receive got still yet already us do doing
        did spend handle handles handled responsible keep keeps kept carry carried ship ships money
        """
    )
    | {"invoiced"}
)

# Fillers that are none where a time or a negation says when, or that not.
EVENTS = keys_of("delivered shipped received returned paid arrived sent")

# Other names of a value.
ALIASES: dict[tuple[str, ...], tuple[str, ...]] = {
    tuple(map(key_of_word, one.split())): tuple(map(key_of_word, other.split()))
    for names in ("uk|united kingdom|great britain|britain", "us|usa|united states|america", "uae|united arab emirates")
    for one in names.split("|")
    for other in names.split("|")[1:2]
    if one != other
}
# Units of time: "each month" is no part of the text "under 6 months", and no row.
TIME_UNITS = keys_of("second minute hour day night week fortnight month quarter year decade")
COUNTED = keys_of("row rows entry entries line lines record records item items time times")
PERSONS = keys_of("employee person people staff worker colleague consultant member name who")

HIGHEST = "highest largest biggest greatest maximum max top most best".split()  # noqa: SIM905
LOWEST = "lowest smallest minimum min least fewest worst".split()  # noqa: SIM905
# Superlatives that name what they compare: direction, and the words for the column.
_SUPERLATIVES = """max price: most expensive|dearest|priciest|costliest|most costly;
    min price: cheapest|least expensive;
    max salary: best paid|highest paid; min salary: lowest paid; max quantity: best-selling|best selling;
    max count: most common|most frequent|most popular|most often;
    min count: least common|least frequent|least popular|least often;
    max date: most recent|latest|newest|last|youngest; min date: earliest|oldest|first;
    max hours: longest; min hours: shortest; max weight: heaviest; min weight: lightest"""
SUPERLATIVES: dict[str, tuple[str, str]] = {
    word: (direction, named)
    for group in _SUPERLATIVES.split(";")
    for direction, named, words in [group.strip().replace(":", "").split(" ", 2)]
    for word in words.split("|")
}
SUPERLATIVES |= dict.fromkeys(HIGHEST, ("max", "")) | dict.fromkeys(LOWEST, ("min", ""))

# What no query here can compute, and what asks for a text.
NOT_COMPUTED = (
    r"median|percentile|quartile|standard deviation|variance|correlat\w{0,12}|regression|forecast\w{0,12}"
    r"|predict\w{0,12}|extrapolat\w{0,12}"
    r"|growth rate|trend\w{0,12}|moving average|running total|cumulative|weighted|percent(?:age)?|per ?cent"
    r"|proportion|share of"
    r"|(?:what|which) share|ratio|(?:what|which) fraction|within budget"
    r"|year[- ]on[- ]year|month[- ]on[- ]month"
    r"|seasonal\w{0,12}|outliers?|histogram|chart|plot"
)
FOR_TEXT = (
    r"why|explain\w{0,12}|reasons?|should|recommend\w{0,12}|advise|likely|how (?:do|can|should|would) (?:i|we|you"
    r"|one)|what happens"
    r"|do(?:es)? (?:\w{1,20} ){1,2}need(?! to)|(?:do|can|may|must|would) (?:i|one) (?:get|pay|take|claim|receive|wait)"
    r"|will (?:we|be|it|the)|if (?:i|we|you)|allowed|policy|according to the (?:policy|contract|handbook"
    r"|agreement)|mean by|meaning of|define"
)
CAN = "count, add up, average, find the highest and lowest, compare two, list, group and look up rows, with conditions"
