"""Write contracts and inspection reports whose values are known: 20 columns each, in English and German.

    python -m scripts.benchmarks extract_documents FOLDER [--documents 100] [--wording a|b] [--seed 1]

A value is written in figures or in words, in a sentence or in a table. A fifth of the values is missing; an annex
contradicts one in twenty. Each fifth document is German. `wording` chooses one of two sets of sentences, so that
what is fitted with one is measured with the other. FOLDER gets `contracts/`, `reports/`, `contracts.yaml` and
`reports.yaml` (the columns), and `values.json`: for each document and column the value, null if it is missing; or two
values where an annex contradicts the text.
"""

# ruff: noqa: E501, PLR2004, PLC3002, S311  a field is read in one line

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

_MISSING, _CONTRADICTED, _IN_TABLE, _GERMAN_EVERY = 0.2, 0.05, 0.25, 5
_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen""".split()  # noqa: SIM905
_TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_EINS = """null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn
siebzehn achtzehn neunzehn""".split()  # noqa: SIM905
_ZIG = "_ _ zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()  # noqa: SIM905
_MONTHS = {
    "en": "January February March April May June July August September October November December".split(),  # noqa: SIM905
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),  # noqa: SIM905
}
_UNITS = {
    "day": {"en": ("day", "days"), "de": ("Tag", "Tage")},
    "week": {"en": ("week", "weeks"), "de": ("Woche", "Wochen")},
    "month": {"en": ("month", "months"), "de": ("Monat", "Monate")},
    "year": {"en": ("year", "years"), "de": ("Jahr", "Jahre")},
    "hour": {"en": ("hour", "hours"), "de": ("Stunde", "Stunden")},
}
_PEOPLE = """Marta Lindqvist|Tobias Engel|Priya Raman|Owen Farrell|Ines Duarte|Karl Hofmann|Aiko Mori|Samuel Osei|Nora
Vance|Luca Ferri|Helene Brandt|Dmitri Orlov|Grace Whitlock|Yusuf Demir|Clara Petit|Henrik Dahl""".replace("\n", " ")
_FIRMS = """Northgate Logistics Ltd|Bluefin Analytics GmbH|Harrow & Pike LLP|Solvent Robotics Inc.|Quayside Foods AG|
Meridian Optics Ltd|Tallow Street Media|Kestrel Energy GmbH|Orchard Health Trust|Vantage Rail plc|Silverbrook Paper AG|
Ironwood Tools Inc.|Lumen Housing Association|Cobalt Freight BV|Fernhill Dairy Ltd|Argent Insurance SE"""
_SITES = """Riverside Mill|Harbour Depot 4|Eastfield Warehouse|Tower Road Garage|Lindenhof Plant|Quarry Lane Store|
Bergstrasse Workshop|Canal Street Bakery|Pier 9 Cold Store|Westpark Foundry"""


def number_in_words(number: int, language: str) -> str:
    """Return a whole number below 1000 in words."""
    if language == "de":
        if number >= 100:
            rest = number_in_words(number % 100, "de") if number % 100 else ""
            return f"{_EINS[number // 100]}hundert{rest}"
        if number < 20:
            return _EINS[number]
        return f"{_EINS[number % 10]}und{_ZIG[number // 10]}" if number % 10 else _ZIG[number // 10]
    if number >= 100:
        rest = f" and {number_in_words(number % 100, 'en')}" if number % 100 else ""
        return f"{_ONES[number // 100]} hundred{rest}"
    if number < 20:
        return _ONES[number]
    return f"{_TENS[number // 10]}-{_ONES[number % 10]}" if number % 10 else _TENS[number // 10]


@dataclass(frozen=True)
class Value:
    """A value as an extraction should give it, and as a document writes it."""

    known: Any
    written: str


Maker = Callable[[random.Random, str], Value]


def _of(texts: str) -> Maker:
    known = [text.strip() for text in texts.replace("\n", "").split("|")]
    return lambda rng, _language: (lambda text: Value(text, text))(rng.choice(known))


def _date(rng: random.Random, language: str) -> Value:
    day = date(2021, 1, 1) + timedelta(days=rng.randrange(1800))
    month = _MONTHS[language][day.month - 1]
    ways = {
        "en": [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", day.isoformat()],
        "de": [f"{day.day}. {month} {day.year}", f"{day:%d.%m.%Y}", day.isoformat()],
    }
    return Value(day.isoformat(), rng.choice(ways[language]))


def _duration(*amounts: tuple[int, str]) -> Maker:
    def make(rng: random.Random, language: str) -> Value:
        count, unit = rng.choice(amounts)
        word = _UNITS[unit][language][count != 1]
        words = number_in_words(count, language)
        words = "eine" if language == "de" and count == 1 and unit in {"week", "hour"} else words
        return Value(f"{count} {word if language == 'en' else _UNITS[unit]['en'][count != 1]}",
                     rng.choice([f"{count} {word}", f"{words} {word}", f"{words} ({count}) {word}"]))  # fmt: skip

    return make


def _amount(low: int, high: int, step: int) -> Maker:
    def make(rng: random.Random, language: str) -> Value:
        amount, currency = step * rng.randrange(low // step, high // step), rng.choice(["EUR", "USD", "GBP", "CHF"])
        grouped = f"{amount:,}" if language == "en" else f"{amount:,}".replace(",", ".")
        sign = {"EUR": "\u20ac", "USD": "$", "GBP": "\u00a3"}.get(currency)
        ways = [f"{currency} {grouped}", f"{grouped} {currency}"]
        ways += [f"{sign}{grouped}" if language == "en" else f"{grouped} {sign}"] if sign else []
        return Value(f"{amount} {currency}", rng.choice(ways))

    return make


def _percentage(*choices: float) -> Maker:
    def make(rng: random.Random, language: str) -> Value:
        share = rng.choice(choices)
        text = f"{share:g}" if language == "en" else f"{share:g}".replace(".", ",")
        return Value(f"{share:g} %", rng.choice([f"{text} %", f"{text}%", f"{text} percent" if language == "en" else f"{text} Prozent"]))  # fmt: skip

    return make


def _number(low: int, high: int) -> Maker:
    def make(rng: random.Random, language: str) -> Value:
        number = rng.randrange(low, high)
        words = number_in_words(number, language) if number < 100 else str(number)
        return Value(number, rng.choice([str(number), words]))

    return make


def _code(prefix: str) -> Maker:
    return lambda rng, _language: (lambda text: Value(text, text))(
        f"{prefix}-{rng.randrange(1000, 9999)}/{rng.randrange(21, 27)}"
    )


def _some(texts: str) -> Maker:
    known = [text.strip() for text in texts.replace("\n", "").split("|")]

    def make(rng: random.Random, language: str) -> Value:
        some = rng.sample(known, rng.choice([2, 3]))
        joint = " and " if language == "en" else " und "
        return Value(some, joint.join([", ".join(some[:-1]), some[-1]]))

    return make


@dataclass(frozen=True)
class Field:
    """A column with what makes its values, and the sentences that say them: by wording and language.

    `label` names the value in a table. A yes/no field has two sentences each, divided by a line: for yes and for no.
    """

    name: str
    question: str
    type: str
    make: Maker | None
    label: dict[str, str]
    a: dict[str, str]
    b: dict[str, str]


def _field(name: str, question: str, kind: str, make: Maker | None, labels: str, *sentences: str) -> Field:
    english, german = labels.split("|")
    a_en, a_de, b_en, b_de = sentences
    return Field(
        name, question, kind, make, {"en": english, "de": german}, {"en": a_en, "de": a_de}, {"en": b_en, "de": b_de}
    )


CONTRACT = [
    _field("Customer", "Who is the customer?", "name", _of(_FIRMS), "Customer|Kunde",
           "This agreement is made for {v} (the \u201cCustomer\u201d).", "Dieser Vertrag wird f\u00fcr {v} (der \u201eKunde\u201c) geschlossen.",
           "The party that orders the services, the Customer, is {v}.", "Kunde im Sinne dieses Vertrags ist {v}."),
    _field("Supplier", "Who is the supplier?", "name", _of(_FIRMS), "Supplier|Lieferant",
           "The services are provided by {v} (the \u201cSupplier\u201d).", "Die Leistungen erbringt {v} (der \u201eLieferant\u201c).",
           "{v} acts as Supplier under this agreement.", "Als Lieferant handelt {v}."),
    _field("Contract number", "What is the contract number?", "text", _code("C"), "Contract number|Vertragsnummer",
           "This document has the contract number {v}.", "Dieses Dokument hat die Vertragsnummer {v}.",
           "Please quote contract no. {v} in all letters.", "Bitte geben Sie in Schreiben die Vertragsnummer {v} an."),
    _field("Start date", "On what date does the contract start?", "date", _date, "Start date|Beginn",
           "The contract starts on {v}.", "Der Vertrag beginnt am {v}.",
           "It takes effect from {v}.", "Er tritt am {v} in Kraft."),
    _field("End date", "On what date does the contract end?", "date", _date, "End date|Ende",
           "It ends on {v} unless it is renewed.", "Er endet am {v}, sofern er nicht verl\u00e4ngert wird.",
           "The term of the contract expires on {v}.", "Die Laufzeit des Vertrags endet am {v}."),
    _field("Notice period", "How long is the notice period?", "duration", _duration((30, "day"), (60, "day"), (3, "month"), (6, "month"), (6, "week")), "Notice period|K\u00fcndigungsfrist",
           "Either party may terminate with a notice period of {v}.", "Jede Partei kann mit einer K\u00fcndigungsfrist von {v} k\u00fcndigen.",
           "To terminate, a party must give {v} written notice.", "Die Frist f\u00fcr eine K\u00fcndigung betr\u00e4gt {v}."),
    _field("Annual fee", "What is the annual fee?", "amount", _amount(5000, 400000, 500), "Annual fee|Jahresgeb\u00fchr",
           "The Customer pays an annual fee of {v}.", "Der Kunde zahlt eine Jahresgeb\u00fchr von {v}.",
           "For each year of service, {v} is payable.", "F\u00fcr jedes Jahr der Leistung sind {v} zu zahlen."),
    _field("Payment term", "Within what time must invoices be paid?", "duration", _duration((10, "day"), (14, "day"), (30, "day"), (45, "day")), "Payment term|Zahlungsziel",
           "Invoices are due within {v} of receipt.", "Rechnungen sind innerhalb von {v} nach Erhalt f\u00e4llig.",
           "The Customer settles every invoice no later than {v} after its date.", "Der Kunde begleicht jede Rechnung sp\u00e4testens {v} nach ihrem Datum."),
    _field("Late interest", "What interest is charged on late payments?", "percentage", _percentage(4, 5.5, 8, 9, 12), "Interest on late payment|Verzugszinsen",
           "Late payments bear interest of {v} a year.", "Versp\u00e4tete Zahlungen werden mit {v} im Jahr verzinst.",
           "If a payment is overdue, {v} interest accrues on it annually.", "Ist eine Zahlung \u00fcberf\u00e4llig, fallen j\u00e4hrlich {v} Zinsen an."),
    _field("Liability cap", "To what amount is liability limited?", "amount", _amount(100000, 5000000, 50000), "Liability cap|Haftungsgrenze",
           "The liability of each party is limited to {v}.", "Die Haftung jeder Partei ist auf {v} begrenzt.",
           "In no case does a party owe damages of more than {v}.", "In keinem Fall schuldet eine Partei mehr als {v} Schadensersatz."),
    _field("Governing law", "Which country's law governs the contract?", "one of: England, Germany, France, Switzerland", _of("England|Germany|France|Switzerland"), "Governing law|Anwendbares Recht",
           "This agreement is governed by the law of {v}.", "Es gilt das Recht von {v}.",
           "The courts shall apply the law of {v}.", "Anzuwenden ist das Recht von {v}."),
    _field("Renews by itself", "Does the contract renew automatically?", "yes/no", None, "Automatic renewal|Automatische Verl\u00e4ngerung",
           "The contract renews automatically at the end of each term.|The contract does not renew automatically.", "Der Vertrag verl\u00e4ngert sich automatisch.|Der Vertrag verl\u00e4ngert sich nicht automatisch.",
           "Unless terminated, it is extended automatically.|Any renewal needs a new written agreement; there is no automatic renewal.", "Ohne K\u00fcndigung wird er automatisch verl\u00e4ngert.|Eine automatische Verl\u00e4ngerung findet nicht statt."),
    _field("Users", "How many users are licensed?", "number", _number(5, 480), "Licensed users|Lizenzierte Nutzer",
           "The licence covers {v} users.", "Die Lizenz gilt f\u00fcr {v} Nutzer.",
           "Up to {v} named users may use the software.", "Bis zu {v} benannte Nutzer d\u00fcrfen die Software verwenden."),
    _field("Support hours", "When is support available?", "text", _of("Monday to Friday, 8:00 to 18:00|Monday to Saturday, 7:00 to 20:00|on working days from 9:00 to 17:00|every day from 6:00 to 22:00"), "Support hours|Supportzeiten",
           "Support is available {v}.", "Support gibt es {v}.",
           "The help desk answers calls {v}.", "Die Hotline nimmt Anrufe entgegen: {v}."),
    _field("Uptime", "What uptime is guaranteed?", "percentage", _percentage(99, 99.5, 99.9, 98.5), "Guaranteed uptime|Garantierte Verf\u00fcgbarkeit",
           "The Supplier guarantees an uptime of {v} in each month.", "Der Lieferant garantiert in jedem Monat eine Verf\u00fcgbarkeit von {v}.",
           "The service is guaranteed to be available for {v} of the time.", "Der Dienst ist garantiert zu {v} der Zeit verf\u00fcgbar."),
    _field("Confidentiality", "How long does confidentiality last after the contract ends?", "duration", _duration((2, "year"), (3, "year"), (5, "year"), (18, "month")), "Confidentiality after the end|Vertraulichkeit nach dem Ende",
           "The duty of confidentiality continues for {v} after the end of the contract.", "Die Vertraulichkeit gilt nach dem Ende des Vertrags noch {v}.",
           "Both parties keep secrets for a further {v} once the agreement is over.", "Beide Parteien wahren Geheimnisse noch {v} nach Vertragsende."),
    _field("Contact", "Who is the contact person for notices?", "name", _of(_PEOPLE), "Contact for notices|Ansprechpartner",
           "Notices are addressed to {v}.", "Mitteilungen sind an {v} zu richten.",
           "The contact person for notices under this agreement is {v}.", "Ansprechpartner f\u00fcr Mitteilungen ist {v}."),
    _field("Subcontractors", "May the supplier use subcontractors?", "yes/no", None, "Subcontractors allowed|Subunternehmer erlaubt",
           "The Supplier may use subcontractors.|The Supplier may not use subcontractors.", "Der Lieferant darf Subunternehmer einsetzen.|Der Lieferant darf keine Subunternehmer einsetzen.",
           "Subcontracting is permitted.|Subcontracting is prohibited.", "Der Einsatz von Subunternehmern ist gestattet.|Der Einsatz von Subunternehmern ist untersagt."),
    _field("Locations", "At which locations are the services provided?", "list", _some("Leeds|Hamburg|Lyon|Basel|Porto|Ghent|Malm\u00f6|Turin"), "Locations|Standorte",
           "The services are provided in {v}.", "Die Leistungen werden in {v} erbracht.",
           "Places of performance are {v}.", "Leistungsorte sind {v}."),
    _field("Deposit", "How much is the deposit?", "amount", _amount(1000, 40000, 250), "Deposit|Kaution",
           "On signing, the Customer pays a deposit of {v}.", "Bei Unterzeichnung zahlt der Kunde eine Kaution von {v}.",
           "A security of {v} is deposited before the first delivery.", "Vor der ersten Lieferung wird eine Kaution von {v} hinterlegt."),
]  # fmt: skip
REPORT = [
    _field("Inspector", "Who carried out the inspection?", "name", _of(_PEOPLE), "Inspector|Pr\u00fcfer",
           "The inspection was carried out by {v}.", "Die Pr\u00fcfung wurde von {v} durchgef\u00fchrt.",
           "Inspector in charge: {v}.", "Verantwortlicher Pr\u00fcfer: {v}."),
    _field("Site", "Which site was inspected?", "text", _of(_SITES), "Site|Standort",
           "The inspected site is {v}.", "Gepr\u00fcft wurde der Standort {v}.",
           "This report is about the site {v}.", "Dieser Bericht betrifft den Standort {v}."),
    _field("Date of inspection", "When was the inspection?", "date", _date, "Date of inspection|Datum der Pr\u00fcfung",
           "The inspection took place on {v}.", "Die Pr\u00fcfung fand am {v} statt.",
           "We visited the site for this inspection on {v}.", "F\u00fcr diese Pr\u00fcfung besuchten wir den Standort am {v}."),
    _field("Report number", "What is the number of the report?", "text", _code("R"), "Report number|Berichtsnummer",
           "This is report number {v}.", "Dies ist der Bericht Nummer {v}.",
           "The report is filed under number {v}.", "Der Bericht ist unter der Nummer {v} abgelegt."),
    _field("Result", "What was the overall result of the inspection?", "one of: passed, passed with conditions, failed", _of("passed|passed with conditions|failed"), "Overall result|Gesamtergebnis",
           "Overall result: {v}.", "Gesamtergebnis: {v}.",
           "The overall result of the inspection is \u201c{v}\u201d.", "Das Gesamtergebnis der Pr\u00fcfung lautet \u201e{v}\u201c."),
    _field("Defects", "How many defects were found?", "number", _number(2, 30), "Defects found|Gefundene M\u00e4ngel",
           "In all, {v} defects were found.", "Insgesamt wurden {v} M\u00e4ngel gefunden.",
           "The inspection brought {v} defects to light.", "Bei der Pr\u00fcfung wurden {v} M\u00e4ngel festgestellt."),
    _field("Moisture", "What moisture was measured in the walls?", "percentage", _percentage(8, 11.5, 14, 17.5, 21), "Moisture of the walls|Feuchte der W\u00e4nde",
           "The moisture measured in the walls was {v}.", "In den W\u00e4nden wurde eine Feuchte von {v} gemessen.",
           "The walls had a moisture content of {v}.", "Die W\u00e4nde hatten einen Feuchtegehalt von {v}."),
    _field("Noise", "What noise level was measured, in dB?", "number", lambda rng, _l: (lambda n: Value(n, f"{n} dB"))(rng.randrange(55, 98)), "Noise level|L\u00e4rmpegel",
           "The noise level at the workplaces was {v}.", "Der L\u00e4rmpegel an den Arbeitspl\u00e4tzen betrug {v}.",
           "At the machines we measured noise of {v}.", "An den Maschinen wurde L\u00e4rm von {v} gemessen."),
    _field("Next inspection", "When is the next inspection due?", "date", _date, "Next inspection|N\u00e4chste Pr\u00fcfung",
           "The next inspection is due on {v}.", "Die n\u00e4chste Pr\u00fcfung ist am {v} f\u00e4llig.",
           "The site must be inspected again by {v}.", "Der Standort muss bis zum {v} erneut gepr\u00fcft werden."),
    _field("Repair deadline", "Within what time must the defects be repaired?", "duration", _duration((2, "week"), (4, "week"), (10, "day"), (3, "month"), (1, "month")), "Time for repairs|Frist f\u00fcr Reparaturen",
           "The defects must be repaired within {v}.", "Die M\u00e4ngel sind innerhalb von {v} zu beheben.",
           "The operator has {v} to remedy the defects.", "Der Betreiber hat {v} Zeit, die M\u00e4ngel zu beseitigen."),
    _field("Repair cost", "What will the repairs cost?", "amount", _amount(500, 90000, 50), "Estimated repair cost|Gesch\u00e4tzte Reparaturkosten",
           "The cost of the repairs is estimated at {v}.", "Die Kosten der Reparaturen werden auf {v} gesch\u00e4tzt.",
           "Repairing everything is expected to cost {v}.", "Die Reparatur wird voraussichtlich {v} kosten."),
    _field("Exits clear", "Were the emergency exits clear?", "yes/no", None, "Emergency exits clear|Notausg\u00e4nge frei",
           "All emergency exits were clear.|The emergency exits were blocked.", "Alle Notausg\u00e4nge waren frei.|Die Notausg\u00e4nge waren versperrt.",
           "Nothing stood in front of the emergency exits, which were clear.|The emergency exits were not clear: pallets stood in front of them.", "Die Notausg\u00e4nge waren frei zug\u00e4nglich.|Die Notausg\u00e4nge waren nicht frei."),
    _field("Helmets", "Did the staff wear helmets?", "yes/no", None, "Helmets worn|Helme getragen",
           "All staff wore helmets.|Staff did not wear helmets.", "Alle Mitarbeiter trugen Helme.|Die Mitarbeiter trugen keine Helme.",
           "Helmets were worn by everybody we met.|We saw that the staff wore no helmets.", "Helme wurden von allen getragen.|Helme wurden nicht getragen."),
    _field("Weather", "What was the weather during the inspection?", "text", _of("dry and sunny|light rain|fog|snow and wind|overcast"), "Weather|Wetter",
           "The weather during the inspection was {v}.", "Das Wetter w\u00e4hrend der Pr\u00fcfung: {v}.",
           "Weather on the day: {v}.", "Wetter am Tag der Pr\u00fcfung: {v}."),
    _field("Duration", "How long did the inspection take?", "duration", _duration((2, "hour"), (3, "hour"), (5, "hour"), (7, "hour")), "Duration of the inspection|Dauer der Pr\u00fcfung",
           "The inspection lasted {v}.", "Die Pr\u00fcfung dauerte {v}.",
           "It took {v} to inspect the site.", "F\u00fcr die Pr\u00fcfung des Standorts wurden {v} ben\u00f6tigt."),
    _field("Accompanied by", "Who accompanied the inspector?", "name", _of(_PEOPLE), "Accompanied by|Begleitet von",
           "The inspector was accompanied by {v}.", "Der Pr\u00fcfer wurde von {v} begleitet.",
           "{v} from the operator accompanied the inspector throughout.", "{v} vom Betreiber begleitete den Pr\u00fcfer."),
    _field("Equipment", "Which equipment was inspected?", "list", _some("forklifts|cranes|boilers|ladders|racks|fire doors|conveyors|compressors"), "Inspected equipment|Gepr\u00fcfte Ger\u00e4te",
           "The following equipment was inspected: {v}.", "Folgende Ger\u00e4te wurden gepr\u00fcft: {v}.",
           "We inspected the {v}.", "Wir haben die Ger\u00e4te {v} gepr\u00fcft."),
    _field("Test load", "With what load, in kg, was the crane tested?", "number", lambda rng, _l: (lambda n: Value(n, f"{n} kg"))(10 * rng.randrange(50, 990)), "Test load of the crane|Pr\u00fcflast des Krans",
           "The crane was tested with a load of {v}.", "Der Kran wurde mit einer Last von {v} gepr\u00fcft.",
           "A load of {v} was hung on the crane as a test.", "Zur Pr\u00fcfung wurde eine Last von {v} an den Kran geh\u00e4ngt."),
    _field("Employees", "How many people work at the site?", "number", _number(8, 300), "Employees|Besch\u00e4ftigte",
           "The site employs {v} people.", "Am Standort arbeiten {v} Menschen.",
           "The staff of the site numbers {v}.", "Die Belegschaft des Standorts z\u00e4hlt {v} Personen."),
    _field("Last inspection", "When was the previous inspection?", "date", _date, "Previous inspection|Vorige Pr\u00fcfung",
           "The previous inspection was on {v}.", "Die vorige Pr\u00fcfung war am {v}.",
           "The site had last been inspected before that on {v}.", "Davor war der Standort zuletzt am {v} gepr\u00fcft worden."),
]  # fmt: skip
_FILLER = {
    "en": [
        "Headings are for convenience only and do not affect the meaning of the text.",
        "Nothing in this document creates a partnership between the parties named in it.",
        "Changes are valid only if they are made in writing and signed by both sides.",
        "Photographs were taken of every area and are kept with the file for seven years.",
        "Words in the singular include the plural, and the other way round.",
        "Should a part of this document be invalid, the remaining parts stay in force.",
        "Copies of this document are kept by both sides and are shown to auditors on request.",
        "The parties meet at least twice a year to talk about the quality of the work.",
        "All staff are told where first aid kits hang, and new staff are trained in their first 2 weeks.",
        "Access to the rooms is granted during office hours after signing in at the gate.",
    ],
    "de": [
        "\u00dcberschriften dienen nur der \u00dcbersicht und haben keine Wirkung auf den Inhalt.",
        "\u00c4nderungen bed\u00fcrfen der Schriftform und der Unterschrift beider Seiten.",
        "Fotos aller Bereiche wurden gemacht und werden sieben Jahre lang aufbewahrt.",
        "Sollte ein Teil dieses Dokuments unwirksam sein, bleibt der Rest g\u00fcltig.",
        "Beide Seiten bewahren Kopien auf und zeigen sie Pr\u00fcfern auf Verlangen.",
        "Die Beteiligten treffen sich mindestens zweimal im Jahr, um \u00fcber die Qualit\u00e4t zu sprechen.",
        "Der Zugang zu den R\u00e4umen wird nach Anmeldung am Tor gew\u00e4hrt.",
        "Neue Mitarbeiter werden in den ersten 2 Wochen geschult.",
    ],
}
_SECTIONS = {
    "en": ["General", "Details", "Terms", "Other provisions", "Closing"],
    "de": ["Allgemeines", "Einzelheiten", "Bedingungen", "Weitere Bestimmungen", "Schluss"],
}
_TITLE = {
    ("contracts", "en"): "Service agreement", ("contracts", "de"): "Dienstleistungsvertrag",
    ("reports", "en"): "Inspection report", ("reports", "de"): "Pr\u00fcfbericht",
}  # fmt: skip
_ANNEX = {"en": "Annex 1: differing terms", "de": "Anhang 1: abweichende Angaben"}


def write_document(
    kind: str, fields: list[Field], rng: random.Random, number: int, wording: str
) -> tuple[str, dict[str, Any]]:
    """Return a document as Markdown, and what each column should hold."""
    language = "de" if number % _GERMAN_EVERY == _GERMAN_EVERY - 1 else "en"
    sentences, rows, annex = list[str](), list[str](), list[str]()
    known = dict[str, Any]()
    taken = set[str]()
    for field in fields:
        if rng.random() < _MISSING:
            known[field.name] = None
            continue
        said = (field.a if wording == "a" else field.b)[language]
        if field.make is None:
            yes = rng.random() < 0.5
            known[field.name] = "yes" if yes else "no"
            sentences.append(said.split("|")[not yes])
            continue
        value = field.make(rng, language)
        while field.type == "name" and value.written in taken:
            value = field.make(rng, language)
        taken.add(value.written)
        known[field.name] = value.known
        if rng.random() < _IN_TABLE:
            rows.append(f"| {field.label[language]} | {value.written} |")
        else:
            sentences.append(said.replace("{v}", value.written))
        if field.type in {"date", "duration", "amount", "percentage"} and rng.random() < _CONTRADICTED / 0.45:
            other = field.make(rng, language)
            while other.known == value.known:
                other = field.make(rng, language)
            known[field.name] = [value.known, other.known]
            annex.append(said.replace("{v}", other.written))
    parts = [f"# {_TITLE[kind, language]} {number + 1}\n"]
    filler = rng.sample(_FILLER[language], 6)
    rng.shuffle(sentences)
    cuts = sorted(rng.sample(range(len(sentences) + 1), 4))
    groups = [sentences[start:end] for start, end in zip([0, *cuts], [*cuts, len(sentences)], strict=True)]
    for section, (heading, group) in enumerate(zip(_SECTIONS[language], groups, strict=True), start=1):
        body = [*group, *filler[section - 1 : section]]
        rng.shuffle(body)
        parts.append(f"## {section}. {heading}\n\n{' '.join(body)}\n")
        if section == 2 and rows:
            parts.append("\n".join(["| | |", "|---|---|", *rows]) + "\n")
    if annex:
        parts.append(f"## {_ANNEX[language]}\n\n{' '.join(annex)}\n")
    return "\n".join(parts), known


def write_all(folder: Path, documents: int, wording: str, seed: int) -> None:
    """Write the documents of both kinds, their columns and their values."""
    values = dict[str, dict[str, Any]]()
    for kind, fields in (("contracts", CONTRACT), ("reports", REPORT)):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        columns = [{"name": one.name, "question": one.question, "type": one.type} for one in fields]
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(columns, sort_keys=False, allow_unicode=True))
        for number in range(documents):
            text, known = write_document(kind, fields, random.Random(f"{seed} {kind} {number}"), number, wording)
            (folder / kind / f"{number + 1:03}.md").write_text(text)
            values[f"{kind}/{number + 1:03}.md"] = known
    (folder / "values.json").write_text(json.dumps(values, indent=1, ensure_ascii=False))


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--wording", choices=["a", "b"], default="a")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write_all(given.folder, given.documents, given.wording, given.seed)


if __name__ == "__main__":
    main()
