"""A server over Qdrant's own engine core, as much of it as the real client asks for.

Run `python -m tests.support.qdrant_stand_in FOLDER PORT [CERTIFICATE KEY]`; with a certificate it is reached over TLS.

What matters is the engine's: scores, filters, what survives SIGKILL. Collections and aliases are folders and a file of
ours. It does not stand for Raft, replicas, shards or consistency: those need a true server.
"""

import json
import shutil
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import RLock
from typing import Any

import qdrant_edge as edge

_HNSW_FROM = 1_000_000  # kilobytes: everything is compared exactly here


class Engine:
    """Collections in a folder, opened when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, RLock()
        self.shards: dict[str, Any] = {}
        self.written = {"points": 0, "bytes": 0}

    def aliases(self) -> dict[str, str]:
        path = self.folder / "aliases.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def put_aliases(self, aliases: dict[str, str]) -> None:
        new = self.folder / "aliases.new"
        new.write_text(json.dumps(aliases))
        new.replace(self.folder / "aliases.json")

    def collections(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "collections").iterdir() if (path / "config.json").exists())

    def create(self, name: str, body: dict[str, Any]) -> None:
        path = self.folder / "collections" / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        self.shards[name] = edge.EdgeShard.create(str(path / "shard"), configuration(body))
        (path / "config.json").write_text(json.dumps(body))

    def shard(self, name: str) -> Any:
        name = self.aliases().get(name, name)
        if name not in self.shards:
            path = self.folder / "collections" / name
            if not (path / "config.json").exists():
                raise KeyError(name)
            self.shards[name] = edge.EdgeShard.load(str(path / "shard"))
        return self.shards[name]

    def delete(self, name: str) -> None:
        if shard := self.shards.pop(name, None):
            shard.close()
        shutil.rmtree(self.folder / "collections" / name, ignore_errors=True)

    def answer(self, method: str, parts: list[str], body: Any) -> Any:  # noqa: PLR0911, PLR0912  one case a request
        """Do what a request asks for and return its result."""
        with self.lock:
            match method, parts:
                case "GET", ["written"]:
                    return self.written
                case "GET", ["aliases"]:
                    named = self.aliases().items()
                    return {"aliases": [{"alias_name": name, "collection_name": one} for name, one in named]}
                case "POST", ["collections", "aliases"]:
                    aliases = self.aliases()
                    for action in body["actions"]:
                        if "delete_alias" in action:
                            del aliases[action["delete_alias"]["alias_name"]]
                        else:
                            made = action["create_alias"]
                            aliases[made["alias_name"]] = made["collection_name"]
                    self.put_aliases(aliases)
                    return True
                case "GET", ["collections"]:
                    return {"collections": [{"name": name} for name in self.collections()]}
                case "PUT", ["collections", name]:
                    self.create(name, body)
                    return True
                case "DELETE", ["collections", name]:
                    self.delete(name)
                    return True
                case "PUT", ["collections", name, "index"]:
                    kinds = {"integer": edge.PayloadSchemaType.Integer, "keyword": edge.PayloadSchemaType.Keyword}
                    kind = kinds[body["field_schema"]]
                    self.shard(name).update(edge.UpdateOperation.create_field_index(body["field_name"], kind))
                    return {"operation_id": 0, "status": "completed"}
                case "PUT", ["collections", name, "points"]:
                    points = [edge.Point(one["id"], _vectors(one["vector"]), one["payload"]) for one in body["points"]]
                    self.shard(name).update(edge.UpdateOperation.upsert_points(points))
                    self.written["points"] += len(points)
                    return {"operation_id": 0, "status": "completed"}
                case "POST", ["collections", name, "points"]:
                    found = self.shard(name).retrieve(body["ids"], with_payload=True, with_vector=False)
                    return [_record(one) for one in found]
                case "POST", ["collections", name, "points", "count"]:
                    members = edge.CountRequest(exact=True, filter=_filter(body.get("filter")))
                    return {"count": self.shard(name).count(members)}
                case "POST", ["collections", name, "points", "delete"]:
                    self.shard(name).update(edge.UpdateOperation.delete_points_by_filter(_filter(body["filter"])))
                    return {"operation_id": 0, "status": "completed"}
                case "POST", ["collections", name, "points", "payload"]:
                    if "filter" in body:
                        change = edge.UpdateOperation.set_payload_by_filter(_filter(body["filter"]), body["payload"])
                    else:
                        change = edge.UpdateOperation.set_payload(body["points"], body["payload"])
                    self.shard(name).update(change)
                    return {"operation_id": 0, "status": "completed"}
                case "POST", ["collections", name, "points", "payload", "delete"]:
                    filtered = _filter(body["filter"])
                    self.shard(name).update(edge.UpdateOperation.delete_payload_by_filter(filtered, body["keys"]))
                    return {"operation_id": 0, "status": "completed"}
                case "POST", ["collections", name, "points", "scroll"]:
                    request = edge.ScrollRequest(
                        offset=body.get("offset"), limit=body["limit"], filter=_filter(body.get("filter")),
                        with_payload=body.get("with_payload"), with_vector=body.get("with_vector", False),
                    )  # fmt: skip
                    found, following = self.shard(name).scroll(request)
                    return {
                        "points": [_record(one) for one in found],
                        "next_page_offset": following if following is None else _plain_id(following),
                    }
                case "POST", ["collections", name, "points", "query"]:
                    finely = edge.QuantizationSearchParams(rescore=True, oversampling=2.0)
                    query = edge.QueryRequest(
                        limit=body["limit"], filter=_filter(body.get("filter")), with_payload=body["with_payload"],
                        with_vector=body.get("with_vector", False), params=edge.SearchParams(quantization=finely),
                        query=edge.Query.Nearest(_vector(body["query"]), using=body["using"]),
                    )  # fmt: skip
                    scored = self.shard(name).query(query)
                    return {"points": [{**_record(one), "version": 0, "score": one.score} for one in scored]}
        raise ValueError(f"{method} {parts}")


def configuration(body: dict[str, Any], graph_from: int = _HNSW_FROM) -> Any:
    """Return what the engine core calls the configuration of a collection."""
    int8 = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, always_ram=True)
    dense = {
        name: edge.EdgeVectorParams(
            size=one["size"], distance=edge.Distance.Dot, on_disk=one.get("on_disk"),
            quantization_config=int8 if one.get("quantization_config") else None,
        )
        for name, one in (body.get("vectors") or {}).items()
    }  # fmt: skip
    sparse = {name: edge.EdgeSparseVectorParams() for name in body.get("sparse_vectors") or {}}
    optimizers = edge.EdgeOptimizersConfig(indexing_threshold=graph_from)
    return edge.EdgeConfig(vectors=dense or None, sparse_vectors=sparse or None, optimizers=optimizers)


def _vector(value: Any) -> Any:
    value = value.get("nearest", value) if isinstance(value, dict) else value
    return edge.SparseVector(value["indices"], value["values"]) if isinstance(value, dict) else value


def _vectors(value: dict[str, Any]) -> dict[str, Any]:
    return {name: _vector(one) for name, one in value.items()}


def _filter(body: dict[str, Any] | None) -> Any:
    if not body:
        return None
    must, should, must_not = (
        [_condition(one) for one in body.get(name) or ()] or None for name in ("must", "should", "must_not")
    )
    return edge.Filter(must=must, should=should, must_not=must_not)


def _condition(one: dict[str, Any]) -> Any:
    if "has_id" in one:
        return edge.HasIdCondition(set(one["has_id"]))
    if "key" not in one:
        return _filter(one)
    if "range" in one:
        return edge.FieldCondition(one["key"], range=edge.RangeFloat(**one["range"]))
    match = one["match"]
    wanted = edge.MatchAny(match["any"]) if "any" in match else edge.MatchValue(match["value"])
    return edge.FieldCondition(one["key"], match=wanted)


def _plain_id(identifier: Any) -> int | str:
    return identifier if isinstance(identifier, int) else str(identifier)


def _record(one: Any) -> dict[str, Any]:
    return {"id": _plain_id(one.id), "payload": one.payload or {}, "vector": _plain_vectors(one.vector)}


def _plain_vectors(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    return {
        name: {"indices": list(one.indices), "values": list(one.values)} if hasattr(one, "indices") else list(one)
        for name, one in value.items()
    }


def serve(folder: Path, port: int, *certificate: str) -> None:
    (folder / "collections").mkdir(parents=True, exist_ok=True)
    engine = Engine(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version, disable_nagle_algorithm = "HTTP/1.1", True  # else answers wait for acknowledgements

        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            engine.written["bytes"] += length
            parts = self.path.split("?")[0].strip("/").split("/")
            try:
                status, said = 200, {"result": engine.answer(self.command, parts, body), "status": "ok", "time": 0.0}
            except KeyError as error:
                status, said = 404, {"status": {"error": f"Not found: {error}"}, "time": 0.0}
            except Exception as error:  # noqa: BLE001  the client is to see it
                status, said = 400, {"status": {"error": f"{type(error).__name__}: {error}"}, "time": 0.0}
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = do  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
