import Testing

@testable import RecordModel

@Suite("Encrypted fields")
struct EncryptedValueTests {
    private func resolve(_ text: String, as type: FieldType?) throws -> FieldValue? {
        let input = try service { () throws(FormError) in try FieldInput(form: json(text)) }
        return try input.resolve(field: "f", definition: type.map { FieldDefinition(name: "f", type: $0) })
    }

    private func reason(_ text: String, as type: FieldType?) -> String? {
        do {
            let value = try resolve(text, as: type)
            Issue.record("\(text) is taken as \(String(describing: value))")
            return nil
        } catch {
            return (error as? ServiceError)?.reason
        }
    }

    @Test(
        "values come in every form in which CloudKit and its clients write them",
        arguments: [
            #"{"value":"Zg=="}"#, #"{"value":"Zg==","type":"BYTES"}"#, #"{"value":"Zg==","type":"ENCRYPTED_BYTES"}"#,
            #"{"value":"Zg==","type":"BYTES","isEncrypted":true}"#,
            #"{"value":"Zg==","type":"ENCRYPTED_BYTES","isEncrypted":true}"#,
        ])
    func forms(text: String) throws {
        #expect(try resolve(text, as: FieldType(.bytes, isEncrypted: true)) == .encrypted(.bytes([102])))
    }

    @Test("every type but references and assets, and lists of them")
    func types() throws {
        let values: [(String, ScalarType, FieldValue)] = [
            (#""x""#, .string, .string("x")), ("-1", .int64, .int64(-1)), ("1", .double, .double(1)),
            ("7", .timestamp, .timestamp(7)),
            (#"{"latitude":1,"longitude":2}"#, .location, .location(Location(latitude: 1, longitude: 2))),
        ]
        for (text, scalar, value) in values {
            let one = FieldType(scalar, isEncrypted: true)
            #expect(try resolve("{\"value\":\(text)}", as: one) == .encrypted(value))
            let list = FieldType(scalar, isList: true, isEncrypted: true)
            #expect(try resolve("{\"value\":[\(text)]}", as: list) == .encrypted(.list(scalar, [value])))
            #expect(try resolve("{\"value\":[]}", as: list) == .encrypted(.list(scalar, [])))
            let stated = "{\"value\":[\(text)],\"type\":\"ENCRYPTED_\(scalar.rawValue)_LIST\"}"
            #expect(try resolve(stated, as: nil) == .encrypted(.list(scalar, [value])))
        }
        #expect(try resolve(#"{"value":null}"#, as: FieldType(.string, isEncrypted: true)) == nil)
        let reference = #"{"value":{"recordName":"r"},"isEncrypted":true}"#
        #expect(reason(reference, as: nil)?.contains("REFERENCE cannot be encrypted") == true)
        let asset = #"{"value":{"receipt":"r"},"isEncrypted":true}"#
        #expect(reason(asset, as: nil)?.contains("ASSETID has no place here") == true)
    }

    @Test(
        "a value marked as encrypted is refused in a plain field, with CloudKit's words",
        arguments: [#"{"value":"x","isEncrypted":true}"#, #"{"value":"x","type":"ENCRYPTED_STRING"}"#])
    func plainField(text: String) {
        let reason = reason(text, as: FieldType(.string)) ?? ""
        #expect(reason.hasPrefix("Attempt to save encrypted data in non encrypted field type. fields.f.value: "))
    }

    @Test("a value of another type is refused")
    func otherType() {
        let type = FieldType(.string, isEncrypted: true)
        #expect(reason(#"{"value":1}"#, as: type)?.hasPrefix("Invalid value, expected type STRING. ") == true)
        #expect(reason(#"{"value":"Zg==","type":"ENCRYPTED_BYTES"}"#, as: type)?.hasPrefix("Invalid value, ") == true)
    }

    @Test("answers mark encrypted values and never have a sealed one")
    func responses() {
        let stamp = Stamp(timestamp: 1, user: "_a")
        let record = Record(
            name: "r", type: "T", changeTag: ChangeTag(incarnation: 1, sequence: 1), created: stamp, modified: stamp,
            fields: Fields([
                .init(name: "a", value: .encrypted(.bytes([102]))), .init(name: "b", value: .encrypted(.int64(5))),
                .init(name: "c", value: .encrypted(.list(.string, [.string("x")]))),
                .init(name: "d", value: .encrypted(.list(.string, []))), .init(name: "e", value: .sealed([1, 2])),
            ]))
        var writer = JSONWriter()
        writer.record(record, numbersAsStrings: true)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        #expect(
            text.contains(
                #""fields":{"a":{"value":"Zg==","type":"ENCRYPTED_BYTES","isEncrypted":true},"#
                    + #""b":{"value":"5","type":"INT64","isEncrypted":true},"#
                    + #""c":{"value":["x"],"type":"STRING_LIST","isEncrypted":true},"#
                    + #""d":{"value":[],"type":"UNKNOWN_LIST","isEncrypted":true}},"pluginFields""#))
    }
}
