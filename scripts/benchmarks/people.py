"""Let many people ask, search, upload and send files of questions at once, and count answers that are not theirs.

    python -m scripts.benchmarks people --people 20 --minutes 10 [--attack] --json docs/measurements/people.json

Each person may see one folder, whose documents hold a number that stands nowhere else, and all ask the same question
about this number, so that an answer of anybody else shows. They use the page, `/v1` and `/mcp`, open documents by
number, also those of others, and download files. Meanwhile the server indexes again and again. An answer is wrong if
it is given or quoted without the person's own number; a search is wrong if it does not find that number. The answer of
the wrong person is any reply, of any route, that holds the number of somebody else. The exit code is 1 if there is one
of either. With `--attack`, somebody with limits sends hostile requests meanwhile, and the host notes how long `/health`
and `/healthz` take: a wait of more than a second, or another status than 200, is a failure too. The library is made in
a temporary folder.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from local_rag.store.people_file import add_person
from scripts.benchmarks import _attacker
from scripts.benchmarks.serve_load import MAIN, wait_until_loaded

CHECKOUT = Path(__file__).parents[2]
QUESTION = "What is the number of the parcel in the locker?"
_HOST = "the-token-of-who-serves-the-library"
_BOUNDARY = "a-boundary-that-is-in-no-document"
_MOST_PER_SECOND = 2.0  # of one person
_MOST_SECONDS = 1.0  # that `/health` may take beside an attacker
_MOST_OPENED = 60  # the highest number of a document that is opened; the library has more with the files added


@dataclass(frozen=True, slots=True)
class Who:
    """A person with the token and the number that nobody else may see."""

    name: str
    token: str
    number: str


class Crowd:
    """People who use a server until `over`; what they got is counted."""

    def __init__(self, address: str, people: list[Who], changing: Path) -> None:
        self._address, self._people, self._changing = address, people, changing
        # Not a part of a longer number, such as a score.
        self._numbers = re.compile(rf"(?<![\w.])(?:{'|'.join(one.number for one in people)})(?!\w)")
        self.over, self.lock = threading.Event(), threading.Lock()
        self.requests, self.outcomes = Counter[str](), Counter[str]()
        self.seconds = defaultdict[str, list[float]](list)
        self._documents, self._chance = defaultdict[str, list[int]](list), random.Random(0)  # noqa: S311
        self.wrong_answers, self.wrong_people = list[str](), list[str]()
        jobs = [self._index, *(lambda one=one, turn=turn: self._live(one, turn) for turn, one in enumerate(people))]
        self._threads = [threading.Thread(target=job) for job in jobs]

    def run(self, seconds: float) -> None:
        """Let them work for a while, and wait until each has got what it asked for last."""
        for thread in self._threads:
            thread.start()
        self.over.wait(seconds)
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _live(self, who: Who, turn: int) -> None:
        actions = (
            *(self._search, self._ask, self._look, self._open, self._search, self._complete),
            *(self._upload, self._call, self._open, self._send_questions),
        )
        while not self.over.wait(1 / _MOST_PER_SECOND):
            actions[turn % len(actions)](who, turn)
            turn += 1

    def _ask(self, who: Who, turn: int) -> None:
        status, text = self._send(who, "ask", urlencode({"question": QUESTION}).encode())
        if status != 200:  # noqa: PLR2004
            return
        answer = json.loads(text)
        said = answer["answer"] + " ".join(one["text"] for one in answer["quotes"])
        with self.lock:
            self.outcomes[answer["outcome"]] += 1
            if answer["outcome"] != "refused" and who.number not in said:
                self.wrong_answers.append(f"{who.name}: {said[:300]}")

    def _search(self, who: Who, turn: int) -> None:
        """Search for the own number, and for that of somebody else, which finds nothing of it."""
        other = self._people[(turn + 1) % len(self._people)]
        for wanted in (who.number, other.number):
            query = urlencode({"q": f"parcel {wanted}", "format": "json"})
            status, text = self._send(who, f"search?{query}", typed=wanted)
            if status == 200 and wanted == who.number and wanted not in json.dumps(json.loads(text)["passages"]):  # noqa: PLR2004
                with self.lock:
                    self.wrong_answers.append(f"{who.name}: the search for {wanted} did not find it")

    def _look(self, who: Who, turn: int) -> None:
        """Look at a page, and learn from the list of documents which may be opened."""
        _, text = self._send(who, "library?format=json")
        if text.startswith("{"):
            self._documents[who.name] = [one["id"] for one in json.loads(text)["documents"]]
        pages = ["library", "history", "questions", "inspect?" + urlencode({"q": "the parcel in the locker"})]
        pages += ["find?" + urlencode({"q": "Which documents mention the parcel?"}), "library/progress", "library/task"]
        self._send(who, pages[self._chance.randrange(len(pages))])

    def _open(self, who: Who, turn: int) -> None:
        """Open one of the own documents and any other by its number, or download their files."""
        for number in [self._chance.choice(self._documents[who.name] or [1]), self._chance.randint(1, _MOST_OPENED)]:
            self._send(who, f"document/{number}{'/file' if turn % 2 else ''}")

    def _complete(self, who: Who, turn: int) -> None:
        messages = [{"role": "user", "content": QUESTION}]
        body = {"messages": messages, "stream": bool(turn % 2)}
        self._send(who, "v1/chat/completions", json.dumps(body).encode(), kind="application/json")

    def _call(self, who: Who, turn: int) -> None:
        """Call a tool of the interface for assistants."""
        number = turn % _MOST_OPENED + 1
        name, arguments = (
            ("search", {"query": "the parcel in the locker"}),
            ("list_documents", {}),
            ("fetch", {"id": f"passage-{number}"}),
            ("find", {"question": "Which documents mention the parcel?"}),
        )[turn // 10 % 4]
        order = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        self._send(who, "mcp", json.dumps(order).encode(), kind="application/json")

    def _upload(self, who: Who, turn: int) -> None:
        note = f"# Note {turn}\n\nThe number of the parcel in the locker is {who.number}, as was seen on day {turn}.\n"
        self._send_file(who, "library/add", "files", f"note-{turn % 50}.md", note)

    def _send_questions(self, who: Who, turn: int) -> None:
        """Send a file of questions, look at an earlier one, and forget what is answered."""
        _, text = self._send(who, "questions?format=json")
        lists = json.loads(text) if text.startswith("[") else []
        for one in lists:
            if not one["running"]:
                self._send(who, f"questions/{one['id']}/answers.jsonl")
                self._send(who, f"questions/{one['id']}/forget", b"")
        if not lists:
            self._send_file(who, "questions", "file", "questions.txt", f"{QUESTION}\nWhere is the parcel?\n")

    def _send_file(self, who: Who, target: str, field: str, name: str, content: str) -> None:
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
        body = f"{head}{content}\r\n--{_BOUNDARY}--\r\n".encode()
        self._send(who, target, body, kind=f"multipart/form-data; boundary={_BOUNDARY}")

    def _send(
        self,
        who: Who,
        target: str,
        body: bytes | None = None,
        *,
        kind: str = "application/x-www-form-urlencoded",
        typed: str = "",
    ) -> tuple[int, str]:
        """Send a request, count it, and look in the reply for the numbers of others, except for what was typed."""
        accept = "application/json, text/event-stream" if target == "mcp" else "application/json"
        headers = {"Authorization": f"Bearer {who.token}", "Accept": accept, "Content-Type": kind}
        request = urllib.request.Request(f"{self._address}{target}", body, headers)  # noqa: S310
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310
                status, text = int(reply.status), reply.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode(errors="replace")
        except OSError:
            status, text = 0, ""
        shown = text.replace(f"parcel {typed}", "") if typed else text
        others = {found for found in self._numbers.findall(shown) if found != who.number}
        with self.lock:
            route = "/".join(part for part in target.partition("?")[0].split("/") if not part.isdigit())
            route = "questions of a file" if route.startswith("questions/") else route
            self.requests[f"{route} {status}"] += 1
            self.seconds[route].append(time.monotonic() - began)
            if others and who.number:
                self.wrong_people.append(f"{who.name}: {target[:100]} held {', '.join(sorted(others))}")
        return status, text

    def _index(self) -> None:
        """Change a document that only who serves the library sees, and index again, as long as people work."""
        host, turn = Who("the host", _HOST, ""), 0
        while not self.over.wait(1):
            turn += 1
            self._changing.write_text(f"# Change {turn}\n\nThis is new.\n", encoding="utf-8")
            self._send(host, "library/index", b"")


class Attack:
    """An attacker and a probe of `/health` beside people, each in a process of its own."""

    def __init__(self, address: str, attacker: str, host: str, seconds: float) -> None:
        self._running = [
            self._start("attack", address, attacker, seconds),
            self._start("probe", address, host, seconds),
        ]

    @staticmethod
    def _start(name: str, *arguments: object) -> "subprocess.Popen[str]":
        code = f"from scripts.benchmarks import _attacker; _attacker.{name}{arguments!r}"
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        command = [sys.executable, "-P", "-c", code]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def report(self) -> dict[str, Any]:
        """Wait for both; return what was sent, and the waits for `/health` in seconds."""
        sent, probed = (json.loads(one.communicate()[0]) for one in self._running)
        waits = sorted(seconds for _, seconds in probed)
        return {
            "attacks": sent,
            "health": {
                "replies": dict(Counter(f"{status}" for status, _ in probed)),
                "without_200": sum(status != 200 for status, _ in probed),  # noqa: PLR2004
                "median": statistics.median(waits),
                "percentile_99": waits[int(0.99 * (len(waits) - 1))],
                "slowest": waits[-1],
                "longer_than_a_second": sum(wait > _MOST_SECONDS for wait in waits),
            },
        }


def measure(count: int, minutes: float, profile: str, *, attacked: bool = False) -> dict[str, Any]:
    """Make a library with a folder for each person, serve it, and let the people use it."""
    with tempfile.TemporaryDirectory() as made:
        documents, library, runtime = Path(made) / "documents", Path(made) / "library", Path(made) / "run"
        runtime.mkdir(mode=0o700)
        numbers = [str(100_003 + 7_919 * turn) for turn in range(count)]
        for turn, number in enumerate(numbers):
            folder = documents / f"person-{turn:02}"
            folder.mkdir(parents=True)
            (folder / "locker.md").write_text(f"# Locker\n\nThe number of the parcel in the locker is {number}.\n")
            (folder / "duties.md").write_text("# Duties\n\nThe keys are handed out at seven every morning.\n")
        if attacked:
            _attacker.write_documents(documents / _attacker.FOLDER)
        environment = os.environ | {
            "PYTHONPATH": str(CHECKOUT),
            "XDG_RUNTIME_DIR": str(runtime),
            "LOCAL_RAG_TOKEN": _HOST,
        }
        run = [sys.executable, "-P", "-c", MAIN]
        index = [*run, "index", str(documents), "--library", str(library), "--profile", profile]
        subprocess.run([*index, "--context", "headings"], check=True, capture_output=True, env=environment)
        people = [
            Who(name, add_person(library, name, "editor", within=[f"{name}/**"]), number)
            for name, number in ((f"person-{turn:02}", number) for turn, number in enumerate(numbers))
        ]
        command = [*run, "serve", "--port", "0", "--openai", "--library", str(library)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split()[-1]
                wait_until_loaded(address)
                crowd = Crowd(address, people, documents / "changing.md")
                if attacked:
                    token = add_person(library, "attacker", "editor", within=[f"{_attacker.FOLDER}/**"])
                    attack = Attack(address, token, _HOST, 60 * minutes)
                crowd.run(60 * minutes)
                beside = attack.report() if attacked else {}
            finally:
                server.terminate()
    return {
        "people": count,
        "minutes": minutes,
        "profile": profile,
        "requests": dict(sorted(crowd.requests.items())),
        "outcomes": dict(crowd.outcomes),
        "seconds": {
            route: {"median": round(statistics.median(took), 2), "slowest": round(max(took), 2)}
            for route, took in sorted(crowd.seconds.items())
        },
        "wrong_answers": len(crowd.wrong_answers),
        "answers_of_the_wrong_person": len(crowd.wrong_people),
        "examples": [*crowd.wrong_answers[:5], *crowd.wrong_people[:5]],
        **beside,
        "load": [round(one, 1) for one in os.getloadavg()],
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--profile", default="tiny")
    parser.add_argument("--attack", action="store_true", help="send hostile requests meanwhile")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report = measure(arguments.people, arguments.minutes, arguments.profile, attacked=arguments.attack)
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    health = report.get("health", {"without_200": 0, "longer_than_a_second": 0})
    wrong = report["wrong_answers"] or report["answers_of_the_wrong_person"]
    sys.exit(1 if wrong or health["without_200"] or health["longer_than_a_second"] else 0)


if __name__ == "__main__":
    main()
