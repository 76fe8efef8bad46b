import NIOCore
import NIOHTTP1
import RecordModel

/// Brings a cluster to where a run can start: nodes answer, the record type and the zone are there, and so are the records that
/// it reads.
struct LoadPreparation: Sendable {
    let settings: LoadSettings
    let client: LoadClient
    let tokens: LoadTokens
    let stop: LoadStop

    private static let batch = Limits.operationsMax

    /// - Throws: `CommandFailure` naming a node that does not answer or is not ready; a retry helps once it is.
    func checkNodes() async throws(CommandFailure) {
        for target in client.targets.indices {
            let (status, _) = try await client.exchange(.GET, "/health/ready", target: target)
            guard status == 200 else {
                throw CommandFailure(
                    "\(client.targets[target].base) is not ready (HTTP \(status)); wait until `zonekeeper cluster status` shows a "
                        + "leader for each shard")
            }
        }
    }

    /// Adds the record type to the schema, and makes a custom zone.
    func prepare() async throws(CommandFailure) {
        guard let administrator = tokens.administrator else {
            throw CommandFailure(
                "--prepare changes the schema and needs the administrator's token: give --admin-token-file or set "
                    + "ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
        if !settings.operation.isKeyValue {
            let place = settings.place
            let container = PercentCoding.encode(place.container)
            let path = "/admin/1/schema?container=\(container)&environment=\(place.environment)&additive=true"
            try await need(
                "the schema", path, bearer: administrator,
                body: Array(LoadRecords.schema(type: settings.recordType).utf8))
        }
        guard settings.place.zone != LoadPlace.defaultZone else { return }
        try await need(
            "the zone", LoadBodies.path("zones/modify", for: settings, tokens: tokens),
            body: JSONWriter.document { writer in
                writer.key("operations")
                writer.array { writer in
                    writer.object { writer in
                        writer.member("operationType", "create")
                        writer.key("zone")
                        writer.object { writer in
                            writer.key("zoneID")
                            writer.object { $0.member("zoneName", settings.place.zone) }
                        }
                    }
                }
            })
    }

    /// Makes what reads and queries look for, where it is not there yet.
    /// - Returns: how many records were made.
    func fill() async throws(CommandFailure) -> Int {
        if settings.operation == .kvGet {
            let path = LoadBodies.path("set", for: settings, tokens: tokens)
            try await need("the preferences", path, body: LoadBodies.allKeys)
        }
        guard settings.operation.needsRecords else { return 0 }
        let records = LoadRecords(type: settings.recordType, place: settings.place)
        var progress = ProgressLine()
        var made = 0
        for first in stride(from: 0, to: settings.records, by: Self.batch) where !stop.isSet {
            let numbers = Array(first..<min(first + Self.batch, settings.records))
            do {
                let missing = try await missing(numbers, records: records)
                if !missing.isEmpty { try await create(missing, records: records) }
                made += missing.count
            } catch {
                progress.abandon()
                throw error
            }
            progress.show("checked \(first + numbers.count) of \(settings.records) records, made \(made)")
        }
        progress.finish("\(settings.records) records, \(made) of them made now")
        return made
    }

    private func missing(_ numbers: [Int], records: LoadRecords) async throws(CommandFailure) -> [Int] {
        let path = LoadBodies.path("records/lookup", for: settings, tokens: tokens)
        let answer = try await need("looking records up", path, body: records.lookup(numbers, desiredKeys: ["checked"]))
        guard let items = answer["records"]?.array, items.count == numbers.count else {
            throw CommandFailure("looking records up: \(numbers.count) answers were expected")
        }
        var missing: [Int] = []
        for (number, item) in zip(numbers, items) {
            switch item["serverErrorCode"]?.string {
            case nil: continue
            case ErrorCode.notFound.rawValue?: missing.append(number)
            case let code?: throw CommandFailure("looking a record up: \(code) (\(item["reason"]?.string ?? ""))")
            }
        }
        return missing
    }

    private func create(_ numbers: [Int], records: LoadRecords) async throws(CommandFailure) {
        let path = LoadBodies.path("records/modify", for: settings, tokens: tokens)
        let answer = try await need("making records", path, body: records.create(named: numbers))
        for item in answer["records"]?.array ?? [] {
            // Another run that prepares meanwhile makes the same records.
            if let code = item["serverErrorCode"]?.string, code != ErrorCode.exists.rawValue,
                code != ErrorCode.conflict.rawValue
            {
                throw CommandFailure("making records: \(code) (\(item["reason"]?.string ?? ""))\(hint(code))")
            }
        }
    }

    /// Sends a request that must succeed as a whole.
    @discardableResult
    private func need(
        _ what: String, _ path: String, bearer: String? = nil, body: [UInt8]
    ) async throws(CommandFailure) -> JSONValue {
        let (status, answer) = try await client.exchange(.POST, path, bearer: bearer, body: body)
        let json = (try? JSONParser.parse(Array(answer.readableBytesView))) ?? .null
        guard status == 200 else {
            let code = json["serverErrorCode"]?.string ?? "no code"
            throw CommandFailure("\(what): HTTP \(status), \(code) (\(json["reason"]?.string ?? ""))\(hint(code))")
        }
        return json
    }

    private func hint(_ code: String) -> String {
        code == ErrorCode.badRequest.rawValue ? "; --prepare adds the record type and the zone that a load needs" : ""
    }
}

extension JSONWriter {
    /// One object as a document.
    fileprivate static func document(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(write)
        return writer.bytes
    }
}
