import Testing

@testable import RecordModel

@Suite("Field values (Web Services reference, types and dictionaries)")
struct FieldInputTests {
    /// Resolves `{"value": ..., "type": ...}` in a field `f` of this type; nil is a field unknown to the schema.
    private func resolve(_ text: String, as type: FieldType?, zone: ZoneID? = nil) throws -> FieldValue? {
        let input = try service { () throws(FormError) in try FieldInput(form: json(text)) }
        return try input.resolve(field: "f", definition: type.map { FieldDefinition(name: "f", type: $0) }, zone: zone)
    }

    private func reason(_ text: String, as type: FieldType?, zone: ZoneID? = nil) -> String? {
        do {
            let value = try resolve(text, as: type, zone: zone)
            Issue.record("\(text) is taken as \(String(describing: value))")
            return nil
        } catch {
            #expect((error as? ServiceError)?.code == .badRequest)
            return (error as? ServiceError)?.reason
        }
    }

    @Test(
        "untyped values take the schema's type",
        arguments: [
            (#""x""#, FieldType(.string), FieldValue.string("x")), ("5", FieldType(.int64), .int64(5)),
            ("5.0", FieldType(.int64), .int64(5)), (#""-7""#, FieldType(.int64), .int64(-7)),
            (#""9223372036854775807""#, FieldType(.int64), .int64(.max)),
            ("-9223372036854775808", FieldType(.int64), .int64(.min)), ("true", FieldType(.int64), .int64(1)),
            ("false", FieldType(.int64), .int64(0)), ("5", FieldType(.double), .double(5)),
            (#""1.5e3""#, FieldType(.double), .double(1500)), ("-1", FieldType(.timestamp), .timestamp(-1)),
            (#""1447700000000""#, FieldType(.timestamp), .timestamp(1_447_700_000_000)),
            ("12.75", FieldType(.timestamp), .timestamp(12)), ("-12.25", FieldType(.timestamp), .timestamp(-13)),
            (#""Zm9v""#, FieldType(.bytes), .bytes([102, 111, 111])),
            (#"{"recordName":"r"}"#, FieldType(.reference), .reference(Reference(recordName: "r"))),
            (
                #"{"latitude":"90","longitude":-180}"#, FieldType(.location),
                .location(Location(latitude: 90, longitude: -180))
            ),
            ("[1,2]", FieldType(.double, isList: true), .list(.double, [.double(1), .double(2)])),
            ("[true]", FieldType(.int64, isList: true), .list(.int64, [.int64(1)])),
            ("[]", FieldType(.bytes, isList: true), .list(.bytes, [])),
            ("3", FieldType(.number, preferred: .double), .double(3)),
            ("3", FieldType(.number, preferred: .int64), .int64(3)),
            ("3.5", FieldType(.number), .double(3.5)), ("3", FieldType(.number), .int64(3)),
            ("9223372036854775807", FieldType(.int64), .int64(.max)), ("1e3", FieldType(.int64), .int64(1000)),
            ("-0", FieldType(.int64), .int64(0)), ("5e-324", FieldType(.double), .double(.leastNonzeroMagnitude)),
            ("1.7976931348623157e308", FieldType(.double), .double(.greatestFiniteMagnitude)),
            ("-62135596800000", FieldType(.timestamp), .timestamp(-62_135_596_800_000)),
            (
                #"[{"latitude":1,"longitude":2},{"latitude":3,"longitude":4}]"#, FieldType(.location, isList: true),
                .list(
                    .location,
                    [
                        .location(Location(latitude: 1, longitude: 2)), .location(Location(latitude: 3, longitude: 4)),
                    ])
            ),
            (#""é\u0000e\u0301\ud83d\ude00""#, FieldType(.string), .string("é\u{0}e\u{301}😀")),
        ])
    func converted(value: String, type: FieldType, expected: FieldValue) throws {
        #expect(try resolve("{\"value\":\(value)}", as: type) == expected)
    }

    @Test(
        "what cannot be converted is refused with CloudKit's words and the field",
        arguments: [
            ("5", FieldType(.string)), (#""x""#, FieldType(.int64)), ("1.5", FieldType(.int64)),
            ("9223372036854775808", FieldType(.int64)), ("-9223372036854775809", FieldType(.int64)),
            (#""9223372036854775808""#, FieldType(.int64)), (#""1.5""#, FieldType(.int64)),
            (#"" 1""#, FieldType(.int64)),
            (#""nan""#, FieldType(.double)), (#""0x10""#, FieldType(.double)), ("true", FieldType(.double)),
            (#""inf""#, FieldType(.double)), ("1e300", FieldType(.timestamp)), (#""Zm9""#, FieldType(.bytes)),
            ("7", FieldType(.bytes)),
            (#""x""#, FieldType(.location)), (#""x""#, FieldType(.reference)), ("[]", FieldType(.string)),
            (#"["a"]"#, FieldType(.string)), (#""a""#, FieldType(.string, isList: true)),
            (#"["a",1]"#, FieldType(.string, isList: true)),
            ("[null]", FieldType(.string, isList: true)), ("[[]]", FieldType(.string, isList: true)),
            ("1.5", FieldType(.number, preferred: .int64)),
        ])
    func refused(value: String, type: FieldType) {
        let reason = reason("{\"value\":\(value)}", as: type) ?? ""
        #expect(reason.hasPrefix("Invalid value, expected type "))
        #expect(reason.contains(". fields.f.value"))
    }

    @Test("a refusal names the field, the type and what was there")
    func words() {
        #expect(
            reason(#"{"value":"x"}"#, as: FieldType(.location))
                == "Invalid value, expected type LOCATION. fields.f.value: found a string")
        #expect(
            reason(#"{"value":["a",1]}"#, as: FieldType(.string, isList: true))
                == "Invalid value, expected type STRING. fields.f.value[1]: found a number")
        #expect(
            reason(#"{"value":1,"type":"INT64"}"#, as: FieldType(.timestamp))
                == "Invalid value, expected type TIMESTAMP. fields.f.value: the type stated is INT64")
    }

    @Test("a stated type must be the schema's", arguments: ["INT64", "STRING_LIST", "DOUBLE", "UNKNOWN_LIST"])
    func mismatch(stated: String) {
        let reason = reason("{\"value\":\"x\",\"type\":\"\(stated)\"}", as: FieldType(.string))
        #expect(reason?.hasPrefix("Invalid value, expected type STRING. fields.f.value: ") == true)
    }

    @Test("an unknown stated type is named, even beside null", arguments: ["STR", "string", "NUMBER", "", "LIST"])
    func unknownType(stated: String) {
        for value in ["1", "null"] {
            let text = "{\"value\":\(value),\"type\":\"\(stated)\"}"
            let wanted = "Invalid value, unknown type '\(stated)'. fields.f.value: state one such as STRING"
            #expect(reason(text, as: nil)?.hasPrefix(wanted) == true)
        }
    }

    @Test("other names of types are taken")
    func aliases() throws {
        #expect(try resolve(#"{"value":1,"type":"NUMBER_INT64"}"#, as: FieldType(.int64)) == .int64(1))
        #expect(try resolve(#"{"value":1,"type":"DOUBLE"}"#, as: FieldType(.number)) == .double(1))
        #expect(
            try resolve(#"{"value":["a"],"type":"UNKNOWN_LIST"}"#, as: FieldType(.string, isList: true))
                == .list(.string, [.string("a")]))
    }

    @Test("an empty list takes the schema's list type, whatever list was stated")
    func emptyLists() throws {
        let list = FieldType(.int64, isList: true)
        for stated in ["UNKNOWN_LIST", "STRING_LIST", "INT64_LIST"] {
            #expect(try resolve("{\"value\":[],\"type\":\"\(stated)\"}", as: list) == .list(.int64, []))
        }
        #expect(try resolve(#"{"value":[],"type":"STRING_LIST"}"#, as: nil) == .list(.string, []))
        #expect(reason(#"{"value":[],"type":"UNKNOWN_LIST"}"#, as: nil)?.contains("an empty list has no type") == true)
        #expect(reason(#"{"value":[]}"#, as: nil)?.contains("an empty list has no type") == true)
    }

    @Test(
        "without a definition the value's looks count",
        arguments: [
            (#""x""#, FieldValue.string("x")), ("5", .int64(5)), ("true", .int64(1)), ("5.5", .double(5.5)),
            (#"{"recordName":"r","action":"NONE"}"#, .reference(Reference(recordName: "r"))),
            (#"{"latitude":1,"longitude":2}"#, .location(Location(latitude: 1, longitude: 2))),
            ("[1,2]", .list(.int64, [.int64(1), .int64(2)])), ("[1,2.5]", .list(.double, [.double(1), .double(2.5)])),
            (#"["a"]"#, .list(.string, [.string("a")])),
        ])
    func inferred(value: String, expected: FieldValue) throws {
        #expect(try resolve("{\"value\":\(value)}", as: nil) == expected)
    }

    @Test("what has no looks is refused", arguments: ["{}", #"{"a":1}"#, "[[1]]", "[null]", #"["a",1]"#])
    func notInferred(value: String) {
        #expect(reason("{\"value\":\(value)}", as: nil) != nil)
    }

    @Test("null clears, also in fields that cannot be written yet")
    func null() throws {
        #expect(try resolve(#"{"value":null}"#, as: FieldType(.string)) == nil)
        #expect(try resolve(#"{"value":null}"#, as: FieldType(.asset)) == nil)
        #expect(try resolve(#"{"value":null}"#, as: FieldType(.string, isEncrypted: true)) == nil)
    }

    @Test("assets need somebody who knows their files")
    func assetsWithoutResolver() {
        let asset = #"{"fileChecksum":"x"}"#
        let reasons = [
            reason("{\"value\":\(asset)}", as: nil), reason("{\"value\":\(asset)}", as: FieldType(.asset)),
            reason("{\"value\":[\(asset)]}", as: nil), reason("{\"value\":\(asset),\"type\":\"ASSETID\"}", as: nil),
        ]
        for reason in reasons { #expect(reason?.contains("ASSETID has no place here") == true) }
    }

    @Test(
        "a reference keeps its action; without one it is NONE",
        arguments: [
            (#""action":"NONE""#, Reference.Action.none), (#""action":"DELETE_SELF""#, .deleteSelf),
            (#""action":"VALIDATE""#, .validate), (#""action":null"#, .none), (#""more":1"#, .none),
        ])
    func actions(member: String, action: Reference.Action) throws {
        for type in [nil, FieldType(.reference)] {
            let text = "{\"value\":{\"recordName\":\"r\",\(member)}}"
            #expect(try resolve(text, as: type) == .reference(Reference(recordName: "r", action: action)))
        }
    }

    @Test("an unknown action is refused", arguments: ["\"CASCADE\"", "\"none\"", "\"\"", "1"])
    func unknownAction(action: String) {
        let text = "{\"value\":{\"recordName\":\"r\",\"action\":\(action)}}"
        #expect(reason(text, as: nil)?.hasPrefix("fields.f.value.action: ") == true)
    }

    @Test(
        "places off the earth are refused",
        arguments: [
            #""latitude":90.1,"longitude":0"#, #""latitude":0,"longitude":-181"#, #""latitude":"nan","longitude":0"#,
            #""latitude":0"#,
        ])
    func coordinates(members: String) {
        #expect(reason("{\"value\":{\(members)}}", as: FieldType(.location))?.contains("fields.f.value.l") == true)
    }

    @Test("all of a location is read")
    func location() throws {
        let text = """
            {"value":{"latitude":1,"longitude":2,"horizontalAccuracy":3,"verticalAccuracy":4,"altitude":5,"speed":6,
            "course":7,"timestamp":8}}
            """
        var location = Location(latitude: 1, longitude: 2)
        (location.horizontalAccuracy, location.verticalAccuracy, location.altitude) = (3, 4, 5)
        (location.speed, location.course, location.timestamp) = (6, 7, 8)
        #expect(try resolve(text, as: nil) == .location(location))
    }

    @Test("a reference to its record's own zone loses the zone, one to another is refused")
    func referenceZones() throws {
        let text = #"{"value":{"recordName":"r","zoneID":{"zoneName":"Notes","ownerRecordName":"_u","zoneType":"X"}}}"#
        let bare = FieldValue.reference(Reference(recordName: "r"))
        #expect(try resolve(text, as: nil, zone: ZoneID(name: "Notes")) == bare)
        #expect(
            try resolve(text, as: nil)
                == .reference(Reference(recordName: "r", zone: ZoneID(name: "Notes", owner: "_u"))))
        #expect(reason(text, as: nil, zone: ZoneID(name: "Other"))?.hasPrefix("fields.f.value.zoneID: ") == true)
        #expect(reason(text, as: nil, zone: ZoneID(name: "Notes", owner: "_v")) != nil)
    }

    @Test("lists are bounded")
    func longList() {
        let members = Array(repeating: "1", count: Limits.listCountMax + 1).joined(separator: ",")
        #expect(reason("{\"value\":[\(members)]}", as: nil)?.contains("10001 members given, at most 10000") == true)
    }

    @Test("a value that is no dictionary, or one without a value, is refused")
    func shape() {
        #expect(throws: FormError.self) { try FieldInput(form: .string("x")) }
        #expect(throws: FormError("is missing; null clears the field", at: "value")) {
            try FieldInput(form: .object([]))
        }
    }

    @Test("a field that is null, {}, or has a value of null, has no value from then on")
    func noValue() throws {
        for text in ["null", "{}", "{\"value\": null}", "{\"value\": null, \"type\": \"STRING\"}"] {
            #expect(try FieldChange(form: .init("f", json(text))) == FieldChange(name: "f", value: nil), "\(text)")
        }
        #expect(try FieldChange(form: .init("f", json("{\"value\": 0}"))).value != nil)
    }
}

/// A document; null, with an issue, if it is not JSON.
func json(_ text: String) -> JSONValue {
    do throws(JSONError) {
        return try JSONParser.parse(Array(text.utf8))
    } catch {
        Issue.record("\(error) in \(text)")
        return .null
    }
}
