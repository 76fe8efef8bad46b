"""Traces of a cluster, read with OpenTelemetry's own definitions."""

import base64
import json
import os
import tempfile
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from conftest import Cluster, Container

IDS = {"traceId", "spanId", "parentSpanId"}
CLIENT = "00f067aa0ba902b7"


def read(line):
    """One line of a file. OTLP's JSON has ids as hexadecimal digits, where that of protobuf has base64; all else, such as
    a member that the definitions lack, is an error."""
    def with_base64(members):
        return {name: base64.b64encode(bytes.fromhex(value)).decode() if name in IDS else value for name, value in members}

    return json_format.ParseDict(json.loads(line, object_pairs_hook=with_base64), TracesData())


def values(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def test_a_save_is_one_tree_over_the_nodes():
    with tempfile.TemporaryDirectory(prefix="zonekeeper-traces-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(os.environ["ZONEKEEPER_PROGRAM"], folder, "--trace-sample", "0")
        container = Container(cluster.nodes[0], "iCloud.com.example.traces")
        container.schema("DEFINE SCHEMA RECORD TYPE Note (text STRING);")

        def save(node, **headers):
            body = {"operations": [{"operationType": "create", "record": {"recordType": "Note", "fields": {"text": {"value": "secret"}}}}]}
            return node.call("POST", f"/database/1/{container.name}/development/public/records/modify", body, headers=headers)

        for node in cluster.nodes:
            save(node)
        for node in cluster.nodes:
            trace = f"{node.number:032x}"
            [record] = save(node, traceparent=f"00-{trace}-{CLIENT}-01")["records"]
            assert "serverErrorCode" not in record, record
        for node in cluster.nodes:
            node.stop()
        spans = {}
        for file in Path(folder).glob("data/node-*/traces/traces.jsonl"):
            assert b"secret" not in file.read_bytes()
            for line in file.read_text().splitlines():
                for resource in read(line).resource_spans:
                    about = values(resource.resource.attributes)
                    assert about["service.name"] == "zonekeeper" and about["service.version"]
                    for span in resource.scope_spans[0].spans:
                        spans.setdefault(int(span.trace_id.hex(), 16), {})[span.span_id.hex()] = (span, int(about["service.instance.id"]))
    assert set(spans) == {1, 2, 3}
    shapes = [shape(number, trace, container.name) for number, trace in spans.items()]
    # One of them was asked to save what it leads, the others asked that one.
    on_leader = {("admission", "records/modify"), ("commit", "records/modify"), ("fsync", "commit"), ("replicate", "commit"), ("apply", "commit")}
    by_another = {("admission", "records/modify"), ("commit", "records/modify"), ("peer", "commit"), ("propose", "peer"),
                  ("fsync", "propose"), ("replicate", "propose"), ("apply", "propose")}
    assert sorted(map(len, shapes)) == [5, 7, 7] and all(each in (on_leader, by_another) for each in shapes), shapes


def shape(number, trace, container):
    """Of each span but the first its name and that of the one above."""
    [first] = [each for each in trace.values() if each[0].parent_span_id.hex() == CLIENT]
    pairs = []
    for span, node in trace.values():
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano and span.status.code == Status.STATUS_CODE_UNSET
        if span is first[0]:
            continue
        above, node_above = trace[span.parent_span_id.hex()]
        assert span.start_time_unix_nano >= above.start_time_unix_nano
        # From node to node it goes between the two ends of a call.
        assert (node != node_above) == (span.name == "propose")
        kinds = {"peer": Span.SPAN_KIND_CLIENT, "propose": Span.SPAN_KIND_SERVER}
        assert span.kind == kinds.get(span.name, Span.SPAN_KIND_INTERNAL)
        if span.name in ("commit", "propose"):
            assert values(span.attributes)["zonekeeper.group"] > 0
        if span.name == "peer":
            assert values(span.attributes)["zonekeeper.peer"] != node
        pairs.append((span.name, above.name))
    span, node = first
    said = values(span.attributes)
    assert node == number and span.kind == Span.SPAN_KIND_SERVER
    assert said["http.request.method"] == "POST" and said["http.response.status_code"] == 200
    assert said["zonekeeper.container"] == container and said["zonekeeper.record_type"] == "Note"
    assert len(said["zonekeeper.request"]) == 36
    assert len(pairs) == len(set(pairs))
    return set(pairs)
