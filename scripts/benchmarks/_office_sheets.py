# ruff: noqa: E501, PLR2004, PLR0915  a long list of wordings
"""Generate the sheets of an office, and questions about them in ordinary words whose answers are known.

Every second wording of a question is held out: it is not looked at when the rules are made.
"""

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

CUSTOMERS = {
    "Fjordan Freight": ("Norway", "Bergen", "Ines Duarte"),
    "Clearfield Data Ltd": ("United Kingdom", "Leeds", "Tom Albright"),
    "Kessler Maschinenbau": ("Germany", "Ulm", "Ines Duarte"),
    "Severn Utilities": ("United Kingdom", "Bristol", "Mara Lindqvist"),
    "Aurora Foods": ("Finland", "Turku", "Tom Albright"),
    "Boulanger et Fils": ("France", "Lyon", "Mara Lindqvist"),
    "Nordic Timber": ("Sweden", "Umea", "Ines Duarte"),
    "Hallgate Books": ("Ireland", "Cork", "Tom Albright"),
}
PRODUCTS = {
    "Planner": ("Software", 49.0, 120, 12),
    "Planner Plus": ("Software", 89.5, 75, 24),
    "Route Tracker": ("Hardware", 249.0, 18, 24),
    "Dock Scanner": ("Hardware", 619.9, 7, 36),
    "Label Printer": ("Hardware", 310.0, 0, 24),
    "Training Day": ("Service", 980.0, None, 0),
    "Support Pack": ("Service", 150.0, None, 12),
}
DEPARTMENTS: dict[str, tuple[Any, ...]] = {
    "Engineering": (1400, 1500, 1600), "Marketing": (280, 300, 320), "Sales": (450, 500, 540),
    "Finance": (150, 155, 160), "Operations": (600, 640, 655), "Human Resources": (120, 125, None),
}  # fmt: skip
EMPLOYEES = [
    ("Anna Berg", "Engineering", "Oslo", 68000, "2018-03-01"), ("Ben Okafor", "Engineering", "Leeds", 61500, "2021-09-15"),
    ("Carla Mendes", "Sales", "Lisbon", 52000, "2020-01-10"), ("David Stone", "Sales", "Leeds", 49500, "2022-05-02"),
    ("Eva Novak", "Finance", "Oslo", 57000, "2016-11-21"), ("Farid Haddad", "Operations", "Leeds", 45000, "2023-02-13"),
    ("Greta Holm", "Operations", "Oslo", 47200, "2019-08-05"), ("Hugo Martin", "Marketing", "Lisbon", 50500, "2024-04-01"),
    ("Iris Chen", "Engineering", "Oslo", 73000, "2015-06-15"), ("Jonas Keller", "Human Resources", "Leeds", 48800, "2017-10-02"),
]  # fmt: skip
SUPPLIERS = ["Brightline Energy", "Castor Office", "Delta Couriers", "Ekman Cleaning", "Foxglove Catering"]
PROJECTS = ["Harbour", "Meridian", "Internal"]
MONTHS = ["January", "February", "March"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its kind, whether its wording is held out, and its answer: a number, a text or several; None if none."""

    question: str
    kind: str
    held_out: bool
    answer: Any


class Office:
    """The rows of an office, and the files that hold them."""

    def __init__(self, seed: int = 7) -> None:
        draw = random.Random(seed)  # noqa: S311
        self.orders = [self._order(number, draw) for number in range(160)]
        self.invoices = [self._invoice(number, draw) for number in range(70)]
        self.hours = [
            (month, date(2025, month, day), name, draw.choice(PROJECTS), draw.choice([1.5, 2, 3, 4, 6, 7.5, 8]))
            for month in (1, 2, 3)
            for day in range(1, 29, 3)
            for name in ("Anna Berg", "Ben Okafor", "Iris Chen", "Greta Holm")
        ]

    @staticmethod
    def _order(number: int, draw: random.Random) -> dict[str, Any]:
        customer, product = draw.choice(list(CUSTOMERS)), draw.choice(list(PRODUCTS))
        quantity = draw.randint(1, 12)
        day = date(2023, 7, 3) + timedelta(days=number * 5)
        status = draw.choice(["Delivered", "Delivered", "Delivered", "Open", "Cancelled"])
        net = round(quantity * PRODUCTS[product][1] * draw.choice([1, 1, 0.95, 0.9]), 2)
        return {"no": f"O-{24100 + number}", "date": day, "customer": customer, "product": product, "quantity": quantity, "net": net, "status": status}  # fmt: skip

    @staticmethod
    def _invoice(number: int, draw: random.Random) -> dict[str, Any]:
        day = date(2024, 1, 8) + timedelta(days=number * 7)
        status = draw.choice(["paid", "paid", "paid", "open", "overdue"])
        amount = round(draw.uniform(40, 4200), 2)
        return {"no": f"F-{day.year}-{number + 11:03}", "date": day, "due": day + timedelta(days=30), "supplier": draw.choice(SUPPLIERS), "amount": amount, "status": status}  # fmt: skip

    def write(self, folder: Path) -> None:
        """Write all files into a folder."""
        import openpyxl  # type: ignore[import-untyped]

        folder.mkdir(parents=True, exist_ok=True)
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.title = "Orders"
        sheet.append(["Orders, export of the sales system"])
        sheet.append([])
        sheet.append(["Order no.", "Order date", "Customer", "Product", "Quantity", "Net EUR", "Status"])
        for one in self.orders:
            sheet.append(
                [one["no"], one["date"], one["customer"], one["product"], one["quantity"], one["net"], one["status"]]
            )
        last = len(self.orders) + 3
        sheet.append(["Total", None, None, None, f"=SUM(E4:E{last})", f"=SUM(F4:F{last})"])
        book.save(folder / "orders.xlsx")
        book = openpyxl.Workbook()
        sheet = book.active
        sheet.title = "Budget"
        sheet.append(["Budget by department in kEUR"])
        sheet.append(["Department", 2023, 2024, 2025])
        for name, years in DEPARTMENTS.items():
            sheet.append([name, *years])
        sheet.append(["Total", 3000, 3220, 3275])
        book.save(folder / "budget.xlsx")
        book = openpyxl.Workbook()
        book.remove(book.active)
        for number, month in enumerate(MONTHS, start=1):
            sheet = book.create_sheet(month)
            sheet.append(["Date", "Employee", "Project", "Hours"])
            for of_month, day, name, project, hours in self.hours:
                if of_month == number:
                    sheet.append([day, name, project, hours])
        book.save(folder / "timesheets 2025.xlsx")
        _write_csv(
            folder / "customers.csv",
            ";",
            [["Customer", "Country", "City", "Account manager"], *([name, *row] for name, row in CUSTOMERS.items())],
        )
        _write_csv(
            folder / "supplier invoices.csv", ";",
            [["Invoice no.", "Invoice date", "Due date", "Supplier", "Amount (EUR)", "Status"],
             *([one["no"], f"{one['date']:%d.%m.%Y}", f"{one['due']:%d.%m.%Y}", one["supplier"], f"{one['amount']:,.2f}".replace(",", " ").replace(".", ",").replace(" ", "."), one["status"]] for one in self.invoices)],
        )  # fmt: skip
        _write_csv(
            folder / "employees.csv", ",", [["Name", "Department", "Office", "Salary EUR", "Start date"], *EMPLOYEES]
        )
        rows = "".join(
            f"<tr><td>{name}</td><td>{kind}</td><td>{price:.2f}</td><td>{'' if stock is None else stock}</td><td>{warranty}</td></tr>"
            for name, (kind, price, stock, warranty) in PRODUCTS.items()
        )
        head = "<tr><th>Product</th><th>Category</th><th>Unit price (EUR)</th><th>In stock</th><th>Warranty (months)</th></tr>"
        (folder / "price list.html").write_text(
            f"<html><body><h1>Price list</h1><table>{head}{rows}</table></body></html>"
        )
        (folder / "handbook.md").write_text(HANDBOOK)


HANDBOOK = """# Office handbook

Employees get 26 days of annual leave. Travel must be booked ten days ahead. The hotel limit in Oslo is EUR 160 a night.
Invoices are paid within 30 days. An order above EUR 5,000 needs two signatures. Overtime is paid at 1.5 times the rate.
The warranty starts with delivery. Customers may return hardware within 14 days. Sick leave is reported before 9 a.m.
"""


def _write_csv(path: Path, delimiter: str, rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)


Row = dict[str, Any]
_Fill = Sequence[tuple[dict[str, str], Any]]


def questions(office: Office) -> list[Asked]:
    """Return 200 questions with their answers and 40 that the sheets do not answer."""
    asked = [*_answerable(office)]
    spread = sorted(range(len(asked)), key=lambda at: (at * 7919) % len(asked))
    chosen = sorted(spread[:200])
    return [asked[at] for at in chosen] + _unanswerable()


def _answerable(office: Office) -> list[Asked]:
    orders, invoices, hours = office.orders, office.invoices, office.hours

    def of(rows: Sequence[Row], **wanted: Any) -> list[Row]:
        return [
            row
            for row in rows
            if all(test(row[name]) if callable(test) else row[name] == test for name, test in wanted.items())
        ]

    def total(rows: Sequence[Row], name: str) -> float:
        return float(round(sum(row[name] for row in rows), 2))

    def most(counts: dict[str, Any]) -> str:
        return max(counts, key=counts.__getitem__)

    def year(number: int) -> Callable[[date], bool]:
        return lambda day: day.year == number

    made = list[Asked]()

    def add(kind: str, tuned: Sequence[str], held: Sequence[str], fills: _Fill) -> None:
        for at, (names, answer) in enumerate(fills):
            for held_out, some in ((False, tuned), (True, held)):
                made.append(Asked(some[at % len(some)].format(**names), kind, held_out, answer))

    short = {name: name.split()[0] for name in CUSTOMERS}
    some = list(CUSTOMERS)
    add(
        "count",
        ["How many orders did {c} place in 2024?", "Number of orders from {c} in 2024"],
        ["How often did {c} order in 2024?", "In 2024, how many orders came from {c}?"],
        [({"c": short[c]}, len(of(orders, customer=c, date=year(2024)))) for c in some[:4]],
    )
    add(
        "count",
        ["How many orders are {s}?", "How many orders have been {s}?"],
        ["What is the number of {s} orders?", "Count the {s} orders"],
        [({"s": s.lower()}, len(of(orders, status=s))) for s in ("Cancelled", "Delivered", "Open")],
    )
    add(
        "count",
        ["How many invoices from {v} are still {s}?"],
        ["How many {s} invoices do we have from {v}?"],
        [
            ({"v": v, "s": s}, len(of(invoices, supplier=v, status=s)))
            for v, s in ((SUPPLIERS[0], "open"), (SUPPLIERS[2], "overdue"), (SUPPLIERS[3], "paid"))
        ],
    )
    add(
        "count",
        ["How many employees work in {o}?"],
        ["How many people are based in the {o} office?", "How many of our staff are in {o}?"],
        [({"o": o}, sum(one[2] == o for one in EMPLOYEES)) for o in ("Oslo", "Leeds", "Lisbon")],
    )
    add(
        "count",
        ["How many people are in the {d} department?"],
        ["How many employees does {d} have?"],
        [({"d": d}, sum(one[1] == d for one in EMPLOYEES)) for d in ("Engineering", "Sales", "Operations")],
    )
    add(
        "count",
        ["How many orders were over {n} EUR?", "How many orders had a net above {n}?"],
        ["How many orders are worth more than {n} EUR?", "Number of orders exceeding {n} euros"],
        [({"n": f"{n:,}"}, len(of(orders, net=lambda value, n=n: value > n))) for n in (2000, 5000)],
    )
    add(
        "sum",
        ["What is the total net of {c} in 2024?", "How much did {c} spend in 2024?"],
        [
            "What did {c} order for in total in 2024?",
            "How much revenue came from {c} in 2024?",
            "Total revenue with {c} for 2024?",
        ],
        [({"c": short[c]}, total(of(orders, customer=c, date=year(2024)), "net")) for c in some[2:8]],
    )
    add(
        "sum",
        ["What is the total budget for {y}?", "How much is the whole budget in {y}?"],
        ["What do all departments get together in {y}?", "Sum of the {y} budget?"],
        [({"y": str(y)}, sum(v[i] or 0 for v in DEPARTMENTS.values())) for i, y in ((0, 2023), (1, 2024), (2, 2025))],
    )
    add(
        "sum",
        ["How many units of {p} were sold in {m} 2024?", "How many {p} were ordered in {m} 2024?"],
        ["What quantity of {p} was ordered in {m} 2024?", "Total quantity of {p} in {m} 2024"],
        [
            (
                {"p": p, "m": m},
                total(of(orders, product=p, date=lambda d, n=n: d.year == 2024 and d.month == n), "quantity"),
            )
            for p, m, n in (
                ("Planner Plus", "March", 3),
                ("Route Tracker", "May", 5),
                ("Dock Scanner", "February", 2),
                ("Label Printer", "June", 6),
            )
            if of(orders, product=p, date=lambda d, n=n: d.year == 2024 and d.month == n)
        ],
    )
    add(
        "sum",
        ["What is the total amount of {s} invoices?", "How much do the {s} invoices add up to?"],
        ["How much money is in {s} invoices?", "What is the sum of all {s} invoices?"],
        [({"s": s}, total(of(invoices, status=s), "amount")) for s in ("overdue", "open", "paid")],
    )
    add(
        "sum",
        ["How much did we pay {v} in 2024?", "What is the total of the invoices from {v} in 2024?"],
        ["What did {v} bill us in 2024?", "How much did {v} charge in total in 2024?"],
        [({"v": v}, total(of(invoices, supplier=v, date=year(2024)), "amount")) for v in SUPPLIERS[:4]],
    )
    names = ("Anna Berg", "Ben Okafor", "Iris Chen", "Greta Holm")
    add(
        "sum",
        ["How many hours did {e} work in {m}?", "How many hours did {e} log in {m}?"],
        ["Hours of {e} in {m}?", "What are {e}'s total hours for {m}?"],
        [
            ({"e": e, "m": MONTHS[n - 1]}, sum(h[4] for h in hours if h[2] == e and h[0] == n))
            for e, n in zip(names, (1, 2, 3, 2), strict=True)
        ],
    )
    add(
        "sum",
        ["How many hours were spent on {p}?", "Total hours on the {p} project"],
        ["How much time went into {p}?", "How many hours has project {p} taken altogether?"],
        [({"p": p}, sum(h[4] for h in hours if h[3] == p)) for p in PROJECTS],
    )
    add(
        "mean",
        ["What is the average salary in {d}?", "What do people in {d} earn on average?"],
        ["What's the mean salary of the {d} department?", "On average, how much is a salary in {d}?"],
        [
            ({"d": d}, _mean([one[3] for one in EMPLOYEES if one[1] == d]))
            for d in ("Engineering", "Sales", "Operations")
        ],
    )
    add(
        "mean",
        ["What is the average net of an order from {c}?", "Average order value of {c}?"],
        ["How big is an average order by {c}?", "What is the mean net per order for {c}?"],
        [({"c": short[c]}, _mean([row["net"] for row in of(orders, customer=c)])) for c in some[:4]],
    )
    add(
        "max",
        ["What is the highest salary?", "Which employee has the highest salary?"],
        ["Who earns the most?", "Who is the best paid employee?"],
        [({}, 73000), ({}, "Iris Chen")][1:],
    )
    add(
        "max",
        ["What is the most expensive product?", "Which product costs the most?"],
        ["Which product has the highest price?", "What's our priciest product?"],
        [({}, "Training Day"), ({}, "Training Day")],
    )
    add(
        "min",
        ["What is the cheapest {k}?", "Which {k} product is the cheapest?"],
        ["Which {k} item has the lowest unit price?", "What is the least expensive product in the category {k}?"],
        [
            ({"k": k.lower()}, min((p for p, v in PRODUCTS.items() if v[0] == k), key=lambda p: PRODUCTS[p][1]))
            for k in ("Hardware", "Software", "Service")
        ],
    )
    add(
        "max",
        ["What was the largest order of {c}?", "What is the highest net of an order by {c}?"],
        ["What was {c}'s biggest order?", "How much was the largest order from {c}?"],
        [({"c": short[c]}, ("value", max(row["net"] for row in of(orders, customer=c)))) for c in some[:3]],
    )
    spent, count = defaultdict[str, float](float), Counter[str]()
    for row in orders:
        spent[row["customer"]] += row["net"]
        count[row["customer"]] += 1
    add(
        "top",
        ["Which customer spent the most?", "Which customer has the highest total net?"],
        ["Who is our biggest customer by revenue?", "Which client brought in the most money?"],
        [({}, most(spent)), ({}, most(spent))],
    )
    if list(count.values()).count(max(count.values())) == 1:
        add(
            "top",
            ["Which customer placed the most orders?"],
            ["Which customer ordered most often?", "Which customer has the most orders?"],
            [({}, most(count)), ({}, most(count))],
        )
    ranked = sorted(spent, key=lambda c: -spent[c])
    add(
        "top",
        ["Top {n} customers by net", "What are the top {n} customers by revenue?"],
        ["Name the {n} customers with the highest revenue", "Which {n} customers spent the most?"],
        [({"n": "3"}, ranked[:3]), ({"n": "five"}, ranked[:5])],
    )
    by_product = defaultdict[str, int](int)
    for row in orders:
        by_product[row["product"]] += row["quantity"]
    add(
        "top",
        ["Which product sold the most units?", "What is the best-selling product?"],
        ["Which product was ordered in the largest quantity?", "What product did we sell most of?"],
        [({}, most(by_product)), ({}, most(by_product))],
    )
    months = defaultdict[str, float](float)
    for row in orders:
        if row["date"].year == 2024:
            months[f"{row['date']:%Y-%m}"] += row["net"]
    add(
        "top",
        ["Which month of 2024 had the highest net?", "In which month of 2024 was the net highest?"],
        ["What was our best month in 2024 by revenue?", "Which month in 2024 brought the most revenue?"],
        [({}, most(months)), ({}, most(months))],
    )
    totals = {name: round(value, 2) for name, value in spent.items()}
    add(
        "group",
        ["What is the total net per customer?", "Show the net by customer"],
        ["Break down revenue by customer", "How much did each customer spend?"],
        [({}, totals), ({}, totals)],
    )
    of_status = dict(Counter(row["status"] for row in orders))
    add("group", ["How many orders are there per status?"], ["Number of orders for each status?"], [({}, of_status)])
    in_department = {d: _mean([one[3] for one in EMPLOYEES if one[1] == d]) for d in {one[1] for one in EMPLOYEES}}
    add(
        "group",
        ["What is the average salary by department?"],
        ["Average salary for each department?", "Mean salary per department"],
        [({}, in_department)],
    )
    by_month = {month: sum(h[4] for h in hours if h[0] == n) for n, month in enumerate(MONTHS, start=1)}
    per_person = {e: sum(h[4] for h in hours if h[2] == e) for e in names}
    add(
        "group",
        ["How many hours did each employee work?"],
        ["Hours per employee?", "Total hours by person"],
        [({}, per_person)],
    )
    del by_month
    add(
        "difference",
        [
            "What is the difference between the {d} budget in 2024 and 2025?",
            "By how much did the budget of {d} increase from 2024 to 2025?",
        ],
        [
            "How much more does {d} get in 2025 than in 2024?",
            "How much higher is the {d} budget for 2025 than for 2024?",
        ],
        [({"d": d}, DEPARTMENTS[d][2] - DEPARTMENTS[d][1]) for d in ("Engineering", "Sales", "Operations")],
    )
    add(
        "difference",
        ["How much more does {a} earn than {b}?", "What is the difference in salary between {a} and {b}?"],
        ["How much higher is the salary of {a} than that of {b}?", "Difference between the salaries of {a} and {b}?"],
        [
            ({"a": a, "b": b}, x - y)
            for (a, _, _, x, _), (b, _, _, y, _) in (
                (EMPLOYEES[8], EMPLOYEES[0]),
                (EMPLOYEES[0], EMPLOYEES[1]),
                (EMPLOYEES[2], EMPLOYEES[3]),
            )
        ],
    )
    add(
        "difference",
        ["How many more orders did {a} place than {b}?"],
        ["{a} placed how many more orders than {b}?", "Difference in the number of orders between {a} and {b}"],
        [
            ({"a": short[a], "b": short[b]}, abs(count[a] - count[b]))
            for a, b in ((ranked[0], ranked[-1]), (ranked[1], ranked[2]))
            if count[a] > count[b]
        ],
    )
    add(
        "distinct",
        ["How many different customers ordered in {m} 2024?"],
        ["How many distinct customers placed an order in {m} 2024?", "How many customers ordered in {m} 2024?"],
        [
            ({"m": m}, len({row["customer"] for row in orders if row["date"].year == 2024 and row["date"].month == n}))
            for m, n in (("April", 4), ("October", 10))
        ],
    )
    add(
        "list",
        ["Which products did {c} order in 2024?", "What products did {c} buy in 2024?"],
        ["List the products that {c} ordered in 2024", "Which products were ordered by {c} in 2024?"],
        [
            ({"c": short[c]}, sorted({row["product"] for row in of(orders, customer=c, date=year(2024))}))
            for c in some[4:8]
        ],
    )
    add(
        "list",
        ["Which employees work in {o}?", "Who works in {o}?"],
        ["List everyone in {o}", "Which of our employees are in {o}?"],
        [({"o": o}, sorted(one[0] for one in EMPLOYEES if one[2] == o)) for o in ("Oslo", "Leeds", "Lisbon")],
    )
    add(
        "list",
        ["Which customers are in {k}?", "List the customers from {k}"],
        ["What customers do we have in {k}?", "Which clients are based in {k}?"],
        [
            ({"k": k}, sorted(c for c, v in CUSTOMERS.items() if v[0] == k))
            for k in ("United Kingdom", "Norway", "Sweden")
        ],
    )
    add(
        "list",
        ["Which invoices of {v} are overdue?", "List the overdue invoices of {v}"],
        ["Show me the overdue invoices from {v}", "What invoices by {v} are overdue?"],
        [
            ({"v": v}, sorted(row["no"] for row in of(invoices, supplier=v, status="overdue")))
            for v in SUPPLIERS
            if of(invoices, supplier=v, status="overdue")
        ][:3],
    )
    add(
        "list",
        ["Which products cost more than {n} EUR?"],
        ["Which products have a unit price above {n}?", "List products over {n} EUR"],
        [({"n": str(n)}, sorted(p for p, v in PRODUCTS.items() if v[1] > n)) for n in (300, 600)],
    )
    add(
        "cell",
        ["What does the {p} cost?", "What is the price of the {p}?", "How much is the {p}?"],
        ["How much does a {p} cost?", "Unit price of {p}?"],
        [({"p": p}, PRODUCTS[p][1]) for p in list(PRODUCTS)[:5]],
    )
    add(
        "cell",
        ["How many {p}s are in stock?", "What is the stock of {p}?"],
        ["How many {p} do we have in stock?", "Stock level of {p}?"],
        [({"p": p}, PRODUCTS[p][2]) for p in ("Dock Scanner", "Route Tracker", "Planner")],
    )
    add(
        "cell",
        ["What is the salary of {e}?", "How much does {e} earn?"],
        ["What does {e} earn?", "{e}'s salary?"],
        [({"e": one[0]}, one[3]) for one in EMPLOYEES[:4]],
    )
    add(
        "cell",
        ["When did {e} start?", "What is the start date of {e}?"],
        ["Since when has {e} been with us?", "On which date did {e} start?"],
        [({"e": one[0]}, one[4]) for one in EMPLOYEES[4:7]],
    )
    add(
        "cell",
        ["In which department is {e}?", "Which department does {e} work in?"],
        ["What department is {e} in?", "{e} works in which department?"],
        [({"e": one[0]}, one[1]) for one in EMPLOYEES[4:8]],
    )
    add(
        "cell",
        ["Who is the account manager of {c}?", "Who is the account manager for {c}?"],
        ["Which account manager looks after {c}?", "Account manager of {c}?"],
        [({"c": short[c]}, CUSTOMERS[c][2]) for c in some[:4]],
    )
    add(
        "cell",
        ["What is the status of order {n}?", "What is the status of {n}?"],
        ["Which status does order {n} have?", "Status of {n}?"],
        [({"n": row["no"]}, row["status"]) for row in orders[10:14]],
    )
    add(
        "cell",
        ["When is invoice {n} due?", "What is the due date of {n}?"],
        ["By when must invoice {n} be paid?", "Due date of invoice {n}?"],
        [({"n": row["no"]}, row["due"].isoformat()) for row in invoices[5:8]],
    )
    add(
        "cell",
        ["What is the {y} budget of {d}?", "How much budget does {d} have in {y}?"],
        ["What was budgeted for {d} in {y}?", "{d} budget {y}?"],
        [
            ({"d": d, "y": str(2023 + i)}, DEPARTMENTS[d][i])
            for d, i in (("Marketing", 1), ("Finance", 2), ("Sales", 0))
        ],
    )
    add(
        "join",
        ["What is the total net of orders from customers in {k}?", "How much did customers in {k} spend?"],
        ["What is the total net for customers from {k}?", "How much revenue came from customers in {k}?"],
        [
            ({"k": k}, total([row for row in orders if CUSTOMERS[row["customer"]][0] == k], "net"))
            for k in ("United Kingdom", "Norway", "Finland")
        ],
    )
    add(
        "join",
        ["How many orders came from {k}?"],
        ["How many orders were placed by customers in {k}?"],
        [
            ({"k": k}, sum(CUSTOMERS[row["customer"]][0] == k for row in orders))
            for k in ("Germany", "France", "Ireland")
        ],
    )
    add(
        "conditions",
        ["How many orders of {p} or {q} were cancelled?"],
        ["How many cancelled orders were for {p} or {q}?"],
        [
            ({"p": p, "q": q}, len(of(orders, status="Cancelled", product=lambda v, p=p, q=q: v in (p, q))))
            for p, q in (("Planner", "Support Pack"), ("Route Tracker", "Dock Scanner"))
        ],
    )
    add(
        "conditions",
        ["How many orders from {c} were not cancelled?", "How many orders did {c} place that were not cancelled?"],
        ["How many orders of {c} are not cancelled?", "Excluding cancelled ones, how many orders did {c} place?"],
        [
            ({"c": short[c]}, len([row for row in of(orders, customer=c) if row["status"] != "Cancelled"]))
            for c in some[:3]
        ],
    )
    add(
        "dates",
        ["How many orders were placed between {a} and {b} 2024?", "How many orders were there from {a} to {b} 2024?"],
        ["Number of orders from {a} through {b} 2024?", "How many orders fall between {a} and {b} 2024?"],
        [
            ({"a": a, "b": b}, len([row for row in orders if row["date"].year == 2024 and n <= row["date"].month <= m]))
            for a, b, n, m in (("March", "May", 3, 5), ("January", "June", 1, 6))
        ],
    )
    add(
        "dates",
        ["How many invoices are dated after {d}?", "How many invoices were there since {e}?"],
        ["Number of invoices after {d}", "How many invoices have come in since {e}?"],
        [({"d": "30 June 2024", "e": "1 July 2024"}, len([row for row in invoices if row["date"] > date(2024, 6, 30)]))]
        * 2,
    )
    add(
        "dates",
        ["What was the total net in Q{q} 2024?", "What is the total net of Q{q} 2024?"],
        ["How much revenue was there in the {w} quarter of 2024?", "Total net in the {w} quarter of 2024?"],
        [
            (
                {"q": str(q), "w": w},
                total([row for row in orders if row["date"].year == 2024 and (row["date"].month + 2) // 3 == q], "net"),
            )
            for q, w in ((1, "first"), (2, "second"), (3, "third"))
        ],
    )
    add(
        "dates",
        ["When was the last order from {c}?", "When did {c} last order?"],
        ["What is the date of the latest order by {c}?", "When was {c}'s most recent order?"],
        [({"c": short[c]}, max(row["date"] for row in of(orders, customer=c)).isoformat()) for c in some[:3]],
    )
    return made


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 6)


def _unanswerable() -> list[Asked]:
    """Return questions whose name, column, time or operation the sheets do not have, or that rows cannot answer."""
    texts = [
        "How many orders did Globex place?", "What is the total net of Initech in 2024?", "How much did Umbrella Corp spend?",
        "What is the average salary in Legal?", "How many employees work in Madrid?", "How many orders came from Japan?",
        "What does the Turbo Encabulator cost?", "What is the salary of Peter Gibbons?", "Who is the account manager of Vandelay?",
        "How many orders were placed in 2019?", "What was the total net in 2030?", "What is the total budget for 2031?",
        "How many hours did Anna Berg work in July?", "How many invoices were dated before 2020?", "What is the 2019 budget of Sales?",
        "What is the median salary?", "What percentage of orders was cancelled?", "Forecast the revenue for next year",
        "What is the standard deviation of the order values?", "What share of revenue comes from Norway?",
        "What is the correlation between price and quantity?", "What is the growth rate of the budget?", "Plot the orders by month",
        "What is the average shoe size of our employees?", "How many children does Anna Berg have?", "What is the total weight of all orders?",
        "Which employee has the longest commute?", "What is the average age in Engineering?", "How many orders were shipped by air?",
        "What is the profit margin of Planner?", "How many invoices did the auditor reject?", "Which product has the best reviews?",
        "What is the phone number of Fjordan?", "How many units of Planner were returned?", "What was the total discount given to Kessler?",
        "Which customer complained the most?", "What is the bonus of Iris Chen?", "How many vacation days has Ben Okafor left?",
        "What is the highest temperature in Oslo?", "How many orders were paid in cash?",
    ]  # fmt: skip
    return [Asked(text, "unanswerable", at % 2 == 1, None) for at, text in enumerate(texts)]
