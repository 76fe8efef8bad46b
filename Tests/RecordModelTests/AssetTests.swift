import Testing

@testable import RecordModel

@Suite("Assets in requests and answers")
struct AssetTests {
    private static let one = AssetReference(sha256: [UInt8](repeating: 1, count: 32), size: 10)
    private static let two = AssetReference(sha256: [UInt8](repeating: 2, count: 32), size: 20)

    /// Knows two receipts.
    private static let resolver = AssetResolver { (input, field) throws(AssetFault) in
        switch input.receipt {
        case "b25l"?: one
        case "dHdv"?: two
        default: throw AssetFault("receipt", "is unknown in \(field), with \(input.size ?? 0) bytes")
        }
    }

    private func resolve(_ json: String, as type: FieldType?) throws -> FieldValue? {
        let input = try FieldInput(form: try JSONParser.parse(Array(json.utf8)))
        let definition = type.map { FieldDefinition(name: "f", type: $0) }
        return try input.resolve(field: "f", definition: definition, assets: Self.resolver)
    }

    @Test("a dictionary is the file of its receipt, whatever type is stated")
    func values() throws {
        for type in ["ASSETID", "ASSET"] {
            for known in [nil, FieldType(.asset)] {
                let json = #"{"value":{"receipt":"b25l","size":10,"wrappingKey":"x"},"type":"\#(type)"}"#
                #expect(try resolve(json, as: known) == .asset(Self.one))
            }
        }
        #expect(try resolve(#"{"value":{"receipt":"dHdv"}}"#, as: nil) == .asset(Self.two))
        let list = #"{"value":[{"receipt":"dHdv"},{"receipt":"b25l"}]}"#
        for known in [nil, FieldType(.asset, isList: true)] {
            #expect(try resolve(list, as: known) == .list(.asset, [.asset(Self.two), .asset(Self.one)]))
        }
        #expect(try resolve(#"{"value":[]}"#, as: FieldType(.asset, isList: true)) == .list(.asset, []))
    }

    @Test(
        "what is no dictionary of a file is refused, with the place",
        arguments: [
            (#"{"value":{"receipt":"x","size":3}}"#, "fields.f.value.receipt: is unknown in f, with 3 bytes"),
            (#"{"value":{"size":3}}"#, "a receipt is missing"), (#"{"value":{"receipt":7}}"#, "fields.f.value.receipt"),
            (#"{"value":{"receipt":"b25l","size":-1}}"#, "fields.f.value.size"),
            (#"{"value":{"receipt":"b25l","size":"10"}}"#, "fields.f.value.size"), (#"{"value":"x"}"#, "ASSETID"),
            (#"{"value":{"receipt":"b25l"},"type":"STRING"}"#, "ASSETID"),
            (#"{"value":{"receipt":"b25l"},"isEncrypted":true}"#, "encrypted data in non encrypted"),
        ])
    func refused(json: String, reason: String) {
        #expect { try resolve(json, as: FieldType(.asset)) } throws: {
            ($0 as? ServiceError)?.code == .badRequest && ($0 as? ServiceError)?.reason.contains(reason) == true
        }
    }

    @Test("a first save in development makes a field of the type, and no file is looked for")
    func extends() throws {
        let body =
            #"{"operations":[{"operationType":"create","record":{"recordType":"T","fields":{"f":{"value":{"receipt":"?"}},"g":{"value":[{"fileChecksum":"?"}]}}}}]}"#
        let request = try ModifyRecordsRequest(body: Array(body.utf8))
        let type = SchemaExtension.extended(Schema(), by: request.operations)?.type(named: "T")
        #expect(type?.fields.first { $0.name == "f" }?.type == FieldType(.asset))
        #expect(type?.fields.first { $0.name == "g" }?.type == FieldType(.asset, isList: true))
    }

    @Test("a record shows what the presenter makes of its files; without one, sizes only")
    func shown() throws {
        let stamp = Stamp(timestamp: 0, user: "_u")
        let record = Record(
            name: "a", type: "T", changeTag: ChangeTag(incarnation: 1, sequence: 1), created: stamp, modified: stamp,
            fields: Fields([
                Fields.Field(name: "f", value: .asset(Self.one)),
                Fields.Field(name: "g", value: .list(.asset, [.asset(Self.two)])),
            ]))
        func fields(_ presenter: AssetPresenter?) throws -> JSONValue {
            var writer = JSONWriter()
            writer.record(record, assets: presenter)
            return try #require(try JSONParser.parse(writer.bytes)["fields"])
        }
        let presenter = AssetPresenter { asset, field in
            var dictionary = AssetDictionary(size: asset.size)
            dictionary.fileChecksum = "sum"
            dictionary.downloadURL = "https://x/\(field)"
            return dictionary
        }
        let shown = try fields(presenter)
        #expect(shown["f"]?["type"]?.string == "ASSETID" && shown["g"]?["type"]?.string == "ASSETID_LIST")
        #expect(shown["f"]?["value"]?["downloadURL"]?.string == "https://x/f")
        #expect(shown["g"]?["value"]?.array?.first?["fileChecksum"]?.string == "sum")
        #expect(try fields(nil)["f"]?["value"]?.serialized() == Array(#"{"size":10}"#.utf8))
    }

    @Test(
        "requests say what is wrong with them",
        arguments: [
            ("{}", "tokens"), (#"{"tokens":[{}]}"#, "tokens[0].recordType: is missing"),
            (#"{"tokens":[{"recordType":"T"}]}"#, "tokens[0].fieldName: is missing"),
            (#"{"tokens":[{"recordType":"../T","fieldName":"f"}]}"#, "tokens[0].recordType"),
            (#"{"tokens":[{"recordType":"T","fieldName":"f/g"}]}"#, "tokens[0].fieldName"),
            (#"{"tokens":[{"recordType":"T","fieldName":"f","recordName":""}]}"#, "tokens[0].recordName"),
            (#"{"tokens":[{"recordType":"T","fieldName":"f","size":-1}]}"#, "tokens[0].size"),
            (#"{"tokens":[{"recordType":"T","fieldName":"f","size":1.5}]}"#, "tokens[0].size"),
        ])
    func uploadRequest(body: String, reason: String) {
        #expect { try AssetsUploadRequest(body: Array(body.utf8)) } throws: {
            ($0 as? ServiceError)?.reason.contains(reason) == true
        }
    }

    @Test("a rereference is for the records' own zone where no other is named")
    func rereference() throws {
        let body = #"{"zoneID":{"zoneName":"z"},"assets":[{"recordName":"a","fieldName":"f"}]}"#
        let request = try AssetsRereferenceRequest(body: Array(body.utf8))
        #expect(request.targetZoneID == ZoneID(name: "z") && request.assets.map(\.recordName) == ["a"])
        let other = #"{"targetZoneID":{"zoneName":"y"},"assets":[]}"#
        let there = try AssetsRereferenceRequest(body: Array(other.utf8))
        #expect(there.zoneID == ZoneID() && there.targetZoneID == ZoneID(name: "y"))
        #expect(throws: ServiceError.self) { try AssetsRereferenceRequest(body: Array(#"{"assets":[{}]}"#.utf8)) }
    }
}
