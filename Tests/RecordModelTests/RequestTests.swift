import Testing

@testable import RecordModel

@Suite("Requests to records/modify, records/lookup and zones")
struct RequestTests {
    private func modify(_ operation: String) throws -> RecordOperation {
        let request = try ModifyRecordsRequest(body: Array("{\"operations\":[\(operation)]}".utf8))
        return try #require(request.operations.first)
    }

    @Test("a whole request is read")
    func whole() throws {
        let body = #"""
            {"operations":[{"operationType":"update","desiredKeys":["a"],"numbersAsStrings":true,"record":{
            "recordName":"r","recordType":"Note","recordChangeTag":"1.2","zoneID":{"zoneName":"ignored"},
            "pluginFields":{},"created":{},"fields":{"title":{"value":"x","type":"STRING"},
            "gone":{"value":null},"none":null}}}],
            "zoneID":{"zoneName":"Notes","ownerRecordName":"_u","zoneType":"REGULAR_CUSTOM_ZONE"},"atomic":false,
            "desiredKeys":[],"numberAsStrings":true,"unknown":1}
            """#
        let request = try ModifyRecordsRequest(body: Array(body.utf8))
        var operation = RecordOperation(
            .update, recordName: "r", recordType: "Note", changeTag: "1.2",
            fields: [
                FieldChange(name: "title", value: FieldInput(type: "STRING", json: .string("x"))),
                FieldChange(name: "gone", value: nil), FieldChange(name: "none", value: nil),
            ])
        operation.desiredKeys = ["a"]
        operation.numbersAsStrings = true
        #expect(request.operations == [operation])
        #expect(request.zoneID == ZoneID(name: "Notes", owner: "_u"))
        #expect(!request.isAtomic && request.numbersAsStrings && request.desiredKeys == [])
    }

    @Test("what is left out has its default")
    func defaults() throws {
        let request = try ModifyRecordsRequest(body: Array(#"{"operations":[],"zoneID":null}"#.utf8))
        #expect(
            request.isAtomic && !request.numbersAsStrings && request.desiredKeys == nil && request.zoneID == ZoneID())
        let create = try modify(#"{"operationType":"create","record":{"recordType":"Note","fields":null}}"#)
        #expect(create == RecordOperation(.create, recordName: nil, recordType: "Note"))
        let deletion = try modify(
            #"{"operationType":"forceDelete","record":{"recordName":"_u","fields":3,"parent":{}}}"#)
        #expect(deletion == RecordOperation(.forceDelete, recordName: "_u"))
    }

    @Test("tags count only where they are checked")
    func tags() throws {
        let force = try modify(
            #"{"operationType":"forceUpdate","record":{"recordName":"r","recordType":"T","recordChangeTag":"1.2"}}"#)
        #expect(force.changeTag == nil)
        let deletion = try modify(#"{"operationType":"delete","record":{"recordName":"r","recordChangeTag":"1.2"}}"#)
        #expect(deletion.changeTag == "1.2")
    }

    @Test(
        "each operation has what it needs",
        arguments: [
            ("create", #"{}"#, "recordType"), ("create", #"{"recordName":"_x","recordType":"T"}"#, "recordName"),
            ("update", #"{"recordChangeTag":"1"}"#, "recordName"),
            ("update", #"{"recordName":"r"}"#, "recordChangeTag"),
            ("replace", #"{"recordName":"r","recordChangeTag":""}"#, "recordChangeTag"),
            ("forceUpdate", #"{"recordName":"r"}"#, "recordType"),
            ("forceReplace", #"{"recordType":"T"}"#, "recordName"),
            ("forceUpdate", #"{"recordName":"_u","recordType":"T"}"#, "recordName"),
            ("delete", #"{"recordName":"r"}"#, "recordChangeTag"), ("forceDelete", #"{}"#, "recordName"),
        ])
    func needs(kind: String, record: String, key: String) {
        let reason = reason { try modify("{\"operationType\":\"\(kind)\",\"record\":\(record)}") }
        #expect(reason?.hasPrefix("operations[0].record.\(key): ") == true)
    }

    @Test(
        "faults are named by their path",
        arguments: [
            ("[]", "expected an object, found an array"), ("{}", "operations: is missing"),
            (#"{"operations":{}}"#, "operations: expected an array, found an object"),
            (#"{"operations":[1]}"#, "operations[0]: expected an object, found a number"),
            (
                #"{"operations":[{"operationType":"upsert","record":{}}]}"#,
                "operations[0].operationType: expected one of create"
            ),
            (
                #"{"operations":[{"operationType":1,"record":{}}]}"#,
                "operations[0].operationType: expected one of create"
            ),
            (#"{"operations":[{"operationType":"create"}]}"#, "operations[0].record: is missing"),
            (#"{"operations":[],"atomic":1}"#, "atomic: expected true or false, found a number"),
            (#"{"operations":[],"zoneID":"Notes"}"#, "zoneID: expected an object, found a string"),
            (#"{"operations":[],"zoneID":{"zoneName":"_x"}}"#, "zoneID.zoneName: '_x' begins with an underscore"),
            (#"{"operations":[],"desiredKeys":[1]}"#, "desiredKeys[0]: expected a string, found a number"),
            ("{", "the body is not JSON: byte 1: expected a key in quotes, found the end"),
        ])
    func paths(body: String, reason expected: String) {
        #expect(reason { try ModifyRecordsRequest(body: Array(body.utf8)) }?.hasPrefix(expected) == true)
    }

    @Test(
        "faults in fields are named by the field",
        arguments: [
            (#"{"title":"x"}"#, #"title: expected an object with "value" and "type", found a string"#),
            (#"{"title":{"type":"STRING"}}"#, "title.value: is missing; null clears the field"),
            (#"{"title":{"value":1,"type":2}}"#, "title.type: expected a string, found a number"),
            (#"{"___modTime":{"value":1}}"#, "___modTime: is a system field"),
            (#"{"1a":null}"#, "1a: '1a' is no name here"),
            (#"{"ä":null}"#, "ä: has characters other than printable ASCII"),
            (#"{"_a":null}"#, "_a: '_a' is no name here"),
        ])
    func fieldPaths(fields: String, expected: String) {
        let operation = #"{"operationType":"create","record":{"recordType":"T"}}"#
        let faulty = "{\"operationType\":\"create\",\"record\":{\"recordType\":\"T\",\"fields\":\(fields)}}"
        let reason = reason { try ModifyRecordsRequest(body: Array("{\"operations\":[\(operation),\(faulty)]}".utf8)) }
        #expect(reason?.hasPrefix("operations[1].record.fields.\(expected)") == true)
    }

    @Test(
        "names are 1 to 255 printable ASCII characters",
        arguments: ["", "é", "a\u{7}", String(repeating: "a", count: 256)])
    func names(name: String) {
        let record = JSONValue.object([.init("recordName", .string(name))])
        let body = JSONValue.object([.init("records", .array([record]))])
        #expect(reason { try LookupRecordsRequest(json: body) }?.hasPrefix("records[0].recordName: ") == true)
        let zones = JSONValue.object([.init("zones", .array([.object([.init("zoneName", .string(name))])]))])
        #expect(reason { try ZonesLookupRequest(json: zones) }?.hasPrefix("zones[0].zoneName: ") == true)
    }

    @Test("a name of 255 characters, spaces among them, is taken")
    func longestName() throws {
        let name = "a b" + String(repeating: "~", count: 252)
        let operation = "{\"operationType\":\"create\",\"record\":{\"recordType\":\"T\",\"recordName\":\"\(name)\"}}"
        #expect(try modify(operation).recordName == name)
    }

    @Test("200 operations are taken, 201 are not")
    func operationsMax() throws {
        func body(_ count: Int) -> [UInt8] {
            let operation = #"{"operationType":"create","record":{"recordType":"T"}}"#
            return Array("{\"operations\":[\(Array(repeating: operation, count: count).joined(separator: ","))]}".utf8)
        }
        #expect(try ModifyRecordsRequest(body: body(200)).operations.count == 200)
        let reason = reason { try ModifyRecordsRequest(body: body(201)) }
        #expect(reason == "operations: 201 given, at most 200 in one request; send them in several requests")
    }

    @Test("one record takes one operation in a request")
    func twice() {
        let operation = #"{"operationType":"forceDelete","record":{"recordName":"r"}}"#
        let reason = reason {
            try ModifyRecordsRequest(body: Array("{\"operations\":[\(operation),\(operation)]}".utf8))
        }
        #expect(reason?.hasPrefix("operations[1].record.recordName: operations[0] is for 'r' too") == true)
    }

    @Test(
        "sharing says that it is not built yet",
        arguments: [
            #""createShortGUID":true"#, #""recordType":"cloudKit.share""#, #""recordType":"cloudkit.shared""#,
            #""forRecord":{"recordName":"r"}"#,
        ])
    func sharing(member: String) {
        let type = member.contains("recordType") ? "" : #","recordType":"T""#
        let reason = reason { try modify("{\"operationType\":\"create\",\"record\":{\(member)\(type)}}") }
        #expect(reason?.contains("not built yet") == true)
    }

    @Test("a body over the limit is refused before it is read")
    func largeBody() {
        let body = [UInt8](repeating: 0x20, count: Limits.requestBodyBytesMax + 1)
        #expect(
            reason { try ModifyRecordsRequest(body: body) }?.hasPrefix("the body has 4194305 bytes, at most 4194304")
                == true)
    }

    @Test("lookups keep the order and each record's own keys")
    func lookup() throws {
        let body = #"{"records":[{"recordName":"b","desiredKeys":["x"]},{"recordName":"_a"}],"desiredKeys":["y"]}"#
        let request = try LookupRecordsRequest(body: Array(body.utf8))
        #expect(
            request.records.map(\.recordName) == ["b", "_a"] && request.records.map(\.desiredKeys) == [["x"], nil])
        #expect(request.desiredKeys == ["y"] && request.zoneID == ZoneID())
    }

    @Test("zones are looked up by ID, bare or inside a zone")
    func zonesLookup() throws {
        let body =
            #"{"zones":[{"zoneName":"Notes"},{"zoneID":{"zoneName":"B","ownerRecordName":"__defaultOwner__"}},{}]}"#
        let request = try ZonesLookupRequest(body: Array(body.utf8))
        #expect(request.zones == [ZoneID(name: "Notes"), ZoneID(name: "B"), ZoneID()])
    }

    @Test("zones are created and deleted, each once a request")
    func zonesModify() throws {
        func body(_ names: [String]) -> [UInt8] {
            let operations = names.map {
                "{\"operationType\":\"delete\",\"zone\":{\"zoneID\":{\"zoneName\":\"\($0)\"}}}"
            }
            return Array("{\"operations\":[\(operations.joined(separator: ","))]}".utf8)
        }
        let request = try ZonesModifyRequest(body: body(["a", "b"]))
        #expect(
            request.operations.map(\.zoneID.name) == ["a", "b"] && request.operations.allSatisfy { $0.kind == .delete })
        #expect(
            reason { try ZonesModifyRequest(body: body(["a", "a"])) }?.hasPrefix("operations[1].zone.zoneID: ") == true)
        #expect(
            reason { try ZonesModifyRequest(body: body(["_x"])) }?.hasPrefix("operations[0].zone.zoneID.zoneName: ")
                == true)
        let nameless = #"{"operations":[{"operationType":"create","zone":{"zoneID":{}}}]}"#
        #expect(
            reason { try ZonesModifyRequest(body: Array(nameless.utf8)) }
                == "operations[0].zone.zoneID.zoneName: is missing")
    }

    @Test("mutated requests are read or refused, and never trap")
    func fuzz() {
        let good = Array(
            (#"{"operations":[{"operationType":"update","record":{"recordName":"r","recordChangeTag":"1","#
                + #""fields":{"a":{"value":1}}}}]}"#)
                .utf8)
        var numbers = SeededNumbers(state: 8)
        var refused = 0
        for _ in 0..<2000 {
            let bytes = numbers.mutated(good)
            if (try? ModifyRecordsRequest(body: bytes)) == nil { refused += 1 }
            _ = try? QueryRecordsRequest(body: bytes)
        }
        #expect(refused > 500)
    }
}
