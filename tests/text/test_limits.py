"""Whether an answer says yes although what is asked exceeds its limit."""

import pytest

from local_rag.text.limits import denies_its_yes


@pytest.mark.parametrize(
    ("question", "answer", "denied"),
    [
        ("Can I spend 300 pounds without approval?", "Yes, up to 250 GBP no approval is needed.", True),
        ("Can I spend 200 pounds without approval?", "Yes, up to 250 GBP no approval is needed.", False),
        ("Can I pay 400 pounds in instalments?", "Yes, from GBP 500 on in three instalments.", True),
        ("Do I need approval for 1200 pounds?", "Yes, above GBP 250, and up to GBP 1,000 the manager does.", False),
        ("May I bring 3 dogs?", "Yes, up to two dogs are allowed.", True),
        ("May I bring 3 dogs?", "Yes, of up to two kilos each.", False),
        ("Can my 8 year old come along?", "Yes, children under 10 years may come.", False),
        ("Is a gift of 60 euros allowed?", "Yes, gifts of no more than EUR 50 are.", True),
        ("Is a gift of 60 euros allowed?", "No, only gifts of up to EUR 50 are.", False),
        ("Which gift may I take for 60 euros?", "Yes, up to EUR 50.", False),
        ("Can I carry over 12 days?", "Yes, not more than ten days.", True),
    ],
)
def test_a_yes_below_a_limit(question: str, answer: str, denied: bool) -> None:
    assert denies_its_yes(question, answer) == denied


def test_the_limit_may_stand_in_the_quotation_only() -> None:
    quoted = "Up to 250 GBP no approval is needed."
    assert denies_its_yes("Can I spend 300 pounds without approval?", "Yes, no approval is needed.", quoted)
    assert not denies_its_yes("Can I spend 250 pounds without approval?", "Yes, no approval is needed.", quoted)
