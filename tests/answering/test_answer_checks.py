"""What an answer says is checked against what was asked."""

import pytest

from local_rag.answering.answer_checks import asks_of_all_rows, gives_number

LEAVE = "How many weeks of paid leave do employees get?"


@pytest.mark.parametrize(
    ("question", "answer", "given"),
    [
        (LEAVE, "They get twelve weeks of paid leave each.", True),
        (LEAVE, "Employees get paid leave for the birth of a child.", False),
        (LEAVE, "None.", True),
        (LEAVE, "It is unlimited.", True),
        ("How many of the 12 weeks are paid?", "It says that the 12 weeks may be taken.", False),
        ("How much does LM-102 cost?", "The article LM-102 costs EUR 2,465 in the list.", True),
        ("How long does the contract run?", "The contract with the customer runs until 7 February 2025.", True),
        ("How often does it sail?", "On Tuesdays.", True),
        (
            "Hotel limit in Ireland for a journey made in 2023",
            "It has the answer that the board decided in 2023.",
            False,
        ),
    ],
)
def test_whether_an_answer_says_a_number(question: str, answer: str, given: bool) -> None:
    assert gives_number([answer], question) == given


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
