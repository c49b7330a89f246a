"""What a question asks for, whether an answer gives it, and which names the question says."""

import pytest

from local_rag.text.expected_answers import Asked, asks_for, asks_how, asks_of_all_rows, gives, question_names


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many weeks of leave do we get?", "number"),
        ("how long is the notice period", "number"),
        ("What percentage is paid?", "number"),
        ("What is the price of Planner Plus?", "number"),
        ("What does the annual pass cost?", "number"),
        ("What do we sell the small toy otter for?", "number"),
        ("What do we pay Brightwell for?", None),
        ("What does the price include?", None),
        ("What was the total budget for 2025?", "number"),
        ("When must the report be delivered?", "date"),
        ("By when do I hand in the form?", "date"),
        ("Which year did it begin?", "date"),
        ("At what time does the boat leave?", "date"),
        ("Who signed the contract?", "name"),
        ("Whose call is it?", "name"),
        ("Who founded it and when was it founded?", None),
        ("What do I do when the lamp is broken?", None),
        ("What happens to those who leave?", None),
        ("What is the price list about?", None),
        ("How do I create an account?", None),
        ("Wann ist die Frist und wer hat sie gesetzt?", None),
    ],
)
def test_what_a_question_asks_for(question: str, kind: Asked | None) -> None:
    assert asks_for(question) == kind


@pytest.mark.parametrize(
    ("question", "how"),
    [
        ("How do I report a theft?", True),
        ("how to lock up", True),
        ("How are tickets refunded?", True),
        ("What should a new volunteer do first?", True),
        ("What are the steps of a renewal?", True),
        ("Was muss ich bei Feueralarm tun?", True),
        ("Wie verbinde ich den Drucker?", True),
        ("¿Cómo reservo una sala?", True),
        ("How long is the notice?", False),
        ("How soon must I report it?", False),
        ("How many steps does the tower have?", False),
        ("What does the lease say about dogs?", False),
        ("Wie lange muss ich warten?", False),
        ("Combien de jours faut-il attendre ?", False),
    ],
)
def test_whether_a_question_asks_how_something_is_done(question: str, how: bool) -> None:
    assert asks_how(question) == how


LEAVE = "How many weeks of paid leave do employees get?"


@pytest.mark.parametrize(
    ("question", "answer", "given"),
    [
        (LEAVE, "They get twelve weeks of paid leave each.", True),
        (LEAVE, "Employees get paid leave for the birth of a child.", False),
        (LEAVE, "Paid leave is unlimited for all the employees.", True),
        (LEAVE, "None.", True),
        ("How many of the 12 weeks are paid?", "It says that the 12 weeks may be taken.", False),
        ("How many days are there to pay?", "They have to pay R-2025-031, which is due on 2025-02-07.", False),
        ("How many days are there to pay?", "The invoice of 7 February 2025 is due within 30 days.", True),
        ("How many visits are there?", "The Provider makes ten to 12 visits, or LM-7 of them.", True),
        ("How much does LM-102 cost?", "The article LM-102 costs EUR 2,465 in the list.", True),
        ("How much does the balance cost?", "The balance in the list costs GBP175 each.", True),
        ("How much does the balance cost?", "The balance is listed there as LM-102 or B/7.", False),
        (LEAVE, "There are two breaks of 45 minutes in each shift.", False),
        (LEAVE, "You get 26 of them every year here.", True),
        (LEAVE, "The first year gives none of it.", True),
        ("How many sera were lost?", "I think the 2025 reference panel is lost.", False),
        ("How many sera were lost?", "About 180 sera thawed, and the 2025 panel.", True),
        ("How many sheets are left?", "There are 2000 sheets left in the store.", True),
        ("Until when does it open on Fridays?", "It is open until 2026-12-02 for all owners.", False),
        ("Until when does it open on Fridays?", "On Friday 4 December it is open until 16:30.", True),
        ("Until when is it open?", "It is open until 2026-12-02 for all owners.", True),
        ("What time does it leave?", "It leaves at noon on 4 December.", True),
        ("How long does the contract run?", "The contract with the customer runs until 7 February 2025.", True),
        ("How often is it greased?", "The bearing is greased daily by the keeper.", True),
        ("When is the API due?", "The API is a part of the delivery to the customer.", False),
        ("When is the API due?", "It is due after two weeks of testing.", True),
        ("When is the API due?", "The API is due at the end of the quarter.", True),
        ("When is the API due in 2025?", "In 2025 the API is due to the customer.", False),
        ("When was A Summer Place released?", "A Summer Place was recorded as an instrumental.", False),
        ("When was A Summer Place released?", "A Summer Place was released in the following autumn.", True),
        ("When may I leave after the late shift?", "You may leave before the late shift is over.", True),
        ("When is the API due?", "It is due on 31 March, says the contract.", True),
        ("When is support available?", "98.5 % of the time", False),
        ("When is support available?", "From 8:00 to 18:00, 99 % of the time", True),
        ("Who signed for Clearfield?", "For Clearfield it was signed in the harbour.", False),
        ("How often does it sail?", "On Tuesdays.", True),
        ("How long does delivery take?", "Overnight.", True),
        ("Hotel limit in Ireland for a journey made in 2023", "GONDOLIER [1]", False),
        ("hotel limit in ireland", "It gets the answer TAMARIND, as the board has decided.", False),
        ("hotel limit in ireland", "140 euro", True),
        ("Is the fee for keys refundable?", "Yes, it is paid back with the last salary.", True),
        ("Who signed for Clearfield?", "It was signed by Ines Duarte for Clearfield.", True),
        ("Who signed for Clearfield?", "It was signed there by the technical lead.", True),
        ("Who signed for Clearfield?", "", False),
        ("How do I sign?", "With a pen, as everybody else does.", True),
    ],
)
def test_whether_an_answer_gives_it(question: str, answer: str, given: bool) -> None:
    assert gives(asks_for(question), [answer], question) == given


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What is the notice period with Kessler?", ["Kessler"]),
        ("per diem in Norway in 2024", ["Norway", "2024"]),
        ("How many orders did Fjordan Freight place in Q3 2024?", ["Fjordan", "Freight", "Q3", "2024"]),
        ("ST-4480 accuracy", ["ST-4480"]),
        ("Does the PDF say when I may leave?", []),
        ("Welche Frist ist in dem Vertrag AB-12 vereinbart?", ["AB-12"]),
    ],
)
def test_the_names_of_a_question(question: str, names: list[str]) -> None:
    assert [fact.text for fact in question_names(question)] == names


@pytest.mark.parametrize(
    ("question", "row", "asks"),
    [
        ("Who earns the most?", "Name: Cem Lund; Gross salary: 69.646,00", True),
        ("What is the total weight?", "Date: Total; Weight: 341532", False),
        ("What is the total weight of DHL?", "Carrier: DHL; Weight: 341532", True),
        ("What is the maximum rate in London?", "City: London; Maximum rate: GBP 175", False),
        ("How many days do I get after five years?", "Years: 5; Days: 27", False),
        ("How much is it all together?", "Item: Bolt; Price: 5", True),
        ("Which articles are below their minimum?", "Article: Gauze; Stock: 12; Minimum: 20", True),
        ("Which invoices were paid late?", "Invoice: R-1; Due: 2026-11-01; Paid on: 2026-11-04", True),
        ("How many staff earn more than 50000?", "Name: Ana; Salary: 69646", True),
        ("List the costs that rose", "Cost: Rent; 2025: 10; 2026: 12", True),
        ("Which rota is valid after 1 May?", "Rota: B; Valid from: 2026-05-01", False),
        ("Which rates apply over 500 EUR?", "Range: over 500 EUR; Rate: 3 %", False),
    ],
)
def test_what_only_all_rows_say(question: str, row: str, asks: bool) -> None:
    assert asks_of_all_rows(question, [row]) == asks
