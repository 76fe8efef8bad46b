import RecordModel
import Testing
import Wire

@Suite("Fuzz: requests")
struct RequestFuzzTests {
    private static let words = [
        "\"value\":", "\"type\":\"STRING\",", "null", "{}", "[]", "\"recordName\":\"r\",", "\"fields\":", "-1", "1.5",
        "true", "\"\"",
        "\"___parent\"", "\"Users\"", "\"NEAR\"", "\"EQUALS\"", "}", "]", ",", "\"self\"",
    ]

    private struct Sample {
        var schema: Schema
        var note: RecordType
    }

    /// Schemas that the requests are held against.
    private static let schemas: [Sample] = {
        var random = FuzzRandom(seed: 5)
        return (0..<50).map { _ in
            let note = random.recordType("Note")
            return Sample(schema: Schema(types: [note, random.recordType("CD_Item"), .users]), note: note)
        }
    }()

    @Test("random and mutated requests are read or refused; what is read resolves or is refused, and round-trips")
    func requests() {
        let outcome = Fuzz.run(salt: 6) { random in
            let kind = random.below(11)
            let json =
                switch kind {
                case 0...3: random.modifyRequest()
                case 4...6: random.queryRequest()
                case 7: random.changesRequest()
                case 8: random.chance(50) ? random.lookupRequest() : random.zonesRequest()
                case 9: random.chance(50) ? random.pushRequest() : random.subscriptionsRequest()
                default: random.usersRequest()
                }
            var body = json.serialized()
            if random.chance(40) { body = random.mutated(body, words: Self.words) }
            switch kind {
            case 0...3: return try modify(body, &random)
            case 4...6: return try query(body, &random)
            case 7: return changes(body)
            default: return others(body)
            }
        }
        outcome.expectBoth()
    }

    private func others(_ body: [UInt8]) -> Bool {
        let isTaken = [
            (try? LookupRecordsRequest(body: body)) != nil, (try? RecordVersionsRequest(body: body)) != nil,
            (try? ZonesLookupRequest(body: body)) != nil,
            (try? ZonesModifyRequest(body: body)) != nil, (try? UsersDiscoverRequest(body: body)) != nil,
            (try? AssetsUploadRequest(body: body)) != nil, (try? AssetsRereferenceRequest(body: body)) != nil,
            (try? DeviceTokenRequest(body: body)) != nil, (try? NotificationsRequest(body: body)) != nil,
            (try? SubscriptionsLookupRequest(body: body)) != nil, (try? SubscriptionsModifyRequest(body: body)) != nil,
        ]
        if let users = try? UsersLookupRequest(body: body) {
            _ = try? users.emailAddresses()
            _ = try? users.userRecordNames()
            return true
        }
        return isTaken.contains(true)
    }

    private func changes(_ body: [UInt8]) -> Bool {
        let isTaken = [
            (try? ZoneChangesRequestForm(body: body)) != nil, (try? RecordChangesRequest(body: body)) != nil,
            (try? DatabaseChangesForm(body: body)) != nil, (try? ZonesChangesForm(body: body)) != nil,
        ]
        return isTaken.contains(true)
    }

    private func query(_ body: [UInt8], _ random: inout FuzzRandom) throws -> Bool {
        let request: QueryRecordsRequest
        do throws(ServiceError) {
            request = try QueryRecordsRequest(body: body)
        } catch {
            try Fuzz.require(error.code == .badRequest && !error.reason.isEmpty, "\(error)")
            return false
        }
        let sample = random.pick(Self.schemas)
        let zone = random.chance(50) ? request.zoneID : nil
        guard let query = try? request.query.resolve(schema: sample.note, zone: zone, container: "c") else {
            return true
        }
        try Fuzz.require(try Query(decoding: query.encoded()) == query, "\(query)")
        for filter in query.filters {
            try Fuzz.require((filter.distance != nil) == (filter.comparator == .near), "\(filter)")
            try Fuzz.require(filter.field != nil || filter.comparator.looksForWords, "\(filter)")
        }
        return true
    }

    private func modify(_ body: [UInt8], _ random: inout FuzzRandom) throws -> Bool {
        let request: ModifyRecordsRequest
        do throws(ServiceError) {
            request = try ModifyRecordsRequest(body: body)
        } catch {
            try Fuzz.require(error.code == .badRequest && !error.reason.isEmpty, "\(error)")
            return false
        }
        var schema = random.pick(Self.schemas).schema
        if let extended = SchemaExtension.extended(schema, by: request.operations) {
            let text = SchemaPrinter.print(extended)
            try Fuzz.require(try SchemaParser.parse(text) == extended.normalized, text)
            let plan = SchemaPlan(from: schema, to: extended)
            try Fuzz.require(plan.refusals.isEmpty && plan.changes.allSatisfy { !$0.kind.hasPrefix("remove") }, text)
            let more = SchemaExtension.extended(extended, by: request.operations)
            try Fuzz.require(more == nil, "extended twice: \(text)")
            schema = extended
        }
        let place = RecordOperation.Place(
            container: "c", environment: .development, scope: .private, zone: request.zoneID)
        for operation in request.operations {
            do throws(ServiceError) {
                let values = try operation.values(in: schema, at: place)
                if !operation.kind.isDelete, operation.recordType != nil {
                    try roundTrip(values, operation, schema, place)
                }
            } catch {
                // The schema was extended by all that the operation needs, if that is possible.
                if error.code == .badRequest { continue }
                Issue.record("\(error) for \(operation)")
            }
        }
        return true
    }

    /// Values come back through an answer and a request as they were, plain ones through the binary form too.
    private func roundTrip(
        _ values: [RecordOperation.Value], _ operation: RecordOperation, _ schema: Schema,
        _ place: RecordOperation.Place
    ) throws(ServiceError) {
        let set = values.compactMap { value in value.value.map { Fields.Field(name: value.name, value: $0) } }
        let fields = Fields(set)
        let stamp = Stamp(timestamp: 0, user: "_u")
        var writer = JSONWriter()
        let record = Record(
            name: "r", type: operation.recordType ?? "", changeTag: ChangeTag(incarnation: 1, sequence: 1),
            created: stamp,
            modified: stamp, fields: fields)
        writer.object { writer in
            writer.key("operations")
            writer.array { writer in
                writer.object { writer in
                    writer.member("operationType", "forceReplace")
                    writer.key("record")
                    writer.record(record, numbersAsStrings: operation.numbersAsStrings ?? false)
                }
            }
        }
        let again = try ModifyRecordsRequest(body: writer.bytes).operations[0].values(in: schema, at: place)
        let read = Fields(again.compactMap { value in value.value.map { Fields.Field(name: value.name, value: $0) } })
        if read != fields { Issue.record("\(fields) comes back as \(read)") }
        let plain = Fields(set.filter { if case .encrypted = $0.value { false } else { true } })
        if (try? decodeBody(encodeBody(plain))) != plain { Issue.record("\(plain) has no binary form") }
    }
}
