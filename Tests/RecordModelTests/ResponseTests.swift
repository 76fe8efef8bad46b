import Testing

@testable import RecordModel

@Suite("Responses of Web Services")
struct ResponseTests {
    private func record(_ fields: [Fields.Field]) -> Record {
        Record(
            name: "r", type: "Note", changeTag: ChangeTag(incarnation: 1, sequence: 36),
            created: Stamp(timestamp: 1, user: "_a"), modified: Stamp(timestamp: 2, user: "_b"), fields: Fields(fields))
    }

    @Test("a record has every key that clients insist on")
    func record() {
        let record = record([.init(name: "n", value: .int64(5)), .init(name: "t", value: .string("x"))])
        #expect(
            text { $0.record(record) } == #"{"recordName":"r","recordType":"Note","#
                + #""fields":{"n":{"value":5,"type":"INT64"},"t":{"value":"x","type":"STRING"}},"pluginFields":{},"#
                + #""recordChangeTag":"1.10","created":{"timestamp":1,"userRecordName":"_a","deviceID":"2"},"#
                + #""modified":{"timestamp":2,"userRecordName":"_b","deviceID":"2"},"deleted":false}"#)
    }

    @Test("every value is written with its type")
    func values() {
        var place = Location(latitude: 1, longitude: -2)
        (place.horizontalAccuracy, place.verticalAccuracy, place.altitude) = (3, 4, 5)
        (place.speed, place.course, place.timestamp) = (6, 7, 8)
        let reference = Reference(recordName: "o", zone: ZoneID(name: "Z", owner: "_u"))
        let record = record([
            .init(name: "a", value: .bytes([102])), .init(name: "b", value: .list(.int64, [])),
            .init(name: "c", value: .list(.double, [.double(1e20)])), .init(name: "d", value: .location(place)),
            .init(name: "e", value: .reference(reference)), .init(name: "f", value: .timestamp(-1)),
        ])
        let written = text { $0.record(record) }
        let parts = [
            #""a":{"value":"Zg==","type":"BYTES"}"#, #""b":{"value":[],"type":"UNKNOWN_LIST"}"#,
            #""c":{"value":[1e+20],"type":"DOUBLE_LIST"}"#,
            #""horizontalAccuracy":3.0,"verticalAccuracy":4.0,"altitude":5.0,"speed":6.0,"course":7.0,"timestamp":8}"#,
            #""recordName":"o","action":"NONE","zoneID":{"zoneName":"Z","ownerRecordName":"_u","#
                + #""zoneType":"REGULAR_CUSTOM_ZONE"}"#,
            #""f":{"value":-1,"type":"TIMESTAMP"}"#,
        ]
        for part in parts { #expect(written.contains(part)) }
    }

    @Test("numbers become strings where the client asks, stamps do not")
    func numbersAsStrings() {
        let record = record([
            .init(name: "a", value: .int64(.max)), .init(name: "b", value: .double(0.5)),
            .init(name: "c", value: .list(.timestamp, [.timestamp(3)])),
        ])
        let written = text { $0.record(record, numbersAsStrings: true) }
        for part in [#""value":"9223372036854775807""#, #""value":"0.5""#, #""value":["3"]"#, #""timestamp":1,"#] {
            #expect(written.contains(part))
        }
    }

    @Test("desired keys choose the fields, few or many of them", arguments: [0, 1, 8, 9, 100])
    func desiredKeys(count: Int) {
        let fields = (0..<200).map { Fields.Field(name: "f\($0)", value: .int64(Int64($0))) }
        let keys = (0..<count).map { "f\($0)" }
        let written = json(text { $0.record(record(fields), desiredKeys: keys) })
        guard case .object(let members)? = written["fields"] else {
            Issue.record("no fields")
            return
        }
        #expect(members.map(\.key).sorted() == keys.sorted())
    }

    @Test("random values come back through a response and a request as they were")
    func roundTrip() throws {
        var numbers = SeededNumbers(state: 9)
        for asStrings in [false, true] {
            for _ in 0..<300 {
                let value = numbers.storable()
                let written = json(
                    text { $0.record(record([.init(name: "f", value: value)]), numbersAsStrings: asStrings) })
                let field = try #require(written["fields"]?["f"])
                let input = try service { () throws(FormError) in try FieldInput(form: field) }
                let definition = FieldDefinition(name: "f", type: value.type)
                #expect(try input.resolve(field: "f", definition: definition) == value)
            }
        }
    }

    @Test("tombstones, zones and errors have their keys")
    func others() {
        let tag = ChangeTag(incarnation: 1, sequence: 2)
        #expect(text { $0.tombstone(recordName: "r") } == #"{"recordName":"r","deleted":true}"#)
        #expect(
            text { $0.tombstone(recordName: "r", changeTag: tag) }
                == #"{"recordName":"r","recordType":null,"deleted":true,"recordChangeTag":"1.2"}"#)
        #expect(
            text { $0.zone(ZoneID(owner: "_u"), syncToken: nil, isAtomic: false) }
                == #"{"zoneID":{"zoneName":"_defaultZone","ownerRecordName":"_u","zoneType":"DEFAULT_ZONE"},"#
                + #""atomic":false}"#
        )
        #expect(
            text { $0.zone(ZoneID(name: "Z"), syncToken: "dA==", isAtomic: true) }
                == #"{"zoneID":{"zoneName":"Z","zoneType":"REGULAR_CUSTOM_ZONE"},"syncToken":"dA==","atomic":true}"#)
        let error = ServiceError(.throttled, "slow", retryAfterSeconds: 3)
        let tail = #""reason":"slow","serverErrorCode":"THROTTLED","retryAfter":3,"retryAfterMilliseconds":3000"#
        #expect(text { $0.recordError(recordName: "r", error) } == "{\"recordName\":\"r\",\(tail)}")
        #expect(
            text { $0.zoneError(ZoneID(name: "Z"), error) }
                == "{\"zoneID\":{\"zoneName\":\"Z\",\"zoneType\":\"REGULAR_CUSTOM_ZONE\"},\(tail)}")
        #expect(
            text { $0.requestError(uuid: "u", error, redirectURL: "https://x") { $0.member("records", .array([])) } }
                == "{\"uuid\":\"u\",\(tail),\"redirectURL\":\"https://x\",\"records\":[]}")
    }

    @Test(
        "a time to come back is whole seconds, never too short, with the exact time beside it",
        arguments: [
            (0, 0, 0), (0.001, 1, 1), (0.101, 1, 101), (1, 1, 1_000), (1.000_1, 2, 1_001), (29.999, 30, 29_999),
        ] as [(Double, Int64, Int64)])
    func retryAfter(seconds: Double, whole: Int64, milliseconds: Int64) {
        let error = ServiceError(.throttled, "slow", retryAfterSeconds: seconds)
        #expect(error.retryAfterWholeSeconds == whole && error.retryAfterMilliseconds == milliseconds)
        let written = text {
            $0.beginObject()
            $0.retryAfter(error)
            $0.endObject()
        }
        #expect(written == #"{"retryAfter":\#(whole),"retryAfterMilliseconds":\#(milliseconds)}"#)
        let strange = [Double.infinity, -.infinity, .nan, -1, 1e300].map {
            ServiceError(.throttled, "slow", retryAfterSeconds: $0).retryAfterWholeSeconds ?? -1
        }
        #expect(strange.allSatisfy { (0...31_622_400).contains($0) }, "\(strange)")
    }
}

extension SeededNumbers {
    /// A value that a client may save.
    fileprivate mutating func storable() -> FieldValue {
        switch value() {
        case .location(let location):
            .location(
                Location(latitude: location.latitude.magnitude <= 90 ? location.latitude : 12.5, longitude: 179.9))
        case .reference:
            .reference(Reference(recordName: name(), zone: below(2) == 0 ? nil : ZoneID(name: name(), owner: "_u")))
        case .list(let element, _) where element == .location || element == .reference: .list(element, [])
        case let other: other
        }
    }
}
