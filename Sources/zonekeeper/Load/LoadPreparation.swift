import Foundation
import NIOCore
import NIOHTTP1
import RecordModel
import ServiceClient

/// Brings a cluster to where a run can start: nodes answer, the users, the record type and the zones are there, and so
/// are the records that the run works on.
struct LoadPreparation: Sendable {
    let settings: LoadSettings
    let client: LoadClient
    /// The caller's; `webAuthToken` may be missing where users are made.
    let tokens: LoadTokens
    let stop: LoadStop

    private static let batch = Limits.operationsMax

    /// - Throws: `CommandFailure` naming a node that does not answer or is not ready; a retry helps once it is.
    func checkNodes() async throws(CommandFailure) {
        for target in client.targets.indices {
            let status = try await client.exchange(.GET, "/health/ready", target: target).status
            guard status == 200 else {
                throw CommandFailure(
                    "\(client.targets[target].base) is not ready (HTTP \(status)); wait until `zonekeeper cluster "
                        + "status` shows a leader for each shard")
            }
        }
    }

    /// Adds the record type to the schema, makes the users and a session for each, and their zones.
    func prepare() async throws(CommandFailure) -> [LoadTokens] {
        guard let administrator = tokens.administrator else {
            throw CommandFailure(
                "--prepare changes the schema and needs the administrator's token: give --admin-token-file or set "
                    + "ZONEKEEPER_ADMIN_TOKEN_FILE")
        }
        if settings.mix.hasRecords {
            let place = settings.place
            let container = PercentCoding.encode(place.container)
            let path = "/admin/1/schema?container=\(container)&environment=\(place.environment)&additive=true"
            try await need(
                "the schema", path, bearer: administrator,
                body: Array(LoadRecords.schema(type: settings.recordType).utf8))
        }
        let sessions = settings.users == 1 ? [tokens] : try await makeSessions(administrator)
        do throws(CommandFailure) {
            for session in sessions where !stop.isSet { try await makeZones(for: session) }
        } catch {
            await revoke(sessions)
            throw error
        }
        return sessions
    }

    private func makeZones(for session: LoadTokens) async throws(CommandFailure) {
        let zones = settings.place.zones.filter { $0 != LoadPlace.defaultZone }
        for first in stride(from: 0, to: zones.count, by: Self.batch) {
            let batch = zones[first..<min(first + Self.batch, zones.count)]
            let operations = batch.map { zone in
                JSONValue.members([
                    "operationType": .string("create"), "zone": .members(["zoneID": ZoneRequests.id(zone)]),
                ])
            }
            try await need(
                "the zones", path("zones/modify", session),
                body: JSONValue.members(["operations": .array(operations)]).serialized())
        }
    }

    /// Makes what reads, updates and queries look for, where it is not there yet.
    /// - Returns: how many records were made.
    func fill(_ sessions: [LoadTokens]) async throws(CommandFailure) -> Int {
        // All users see the same public database.
        let owners = settings.place.database == "public" ? Array(sessions.prefix(1)) : sessions
        var made = 0
        for session in sessions where settings.mix.operations.contains(.kvGet) {
            try await need(
                "the preferences", LoadBodies.path("set", isKeyValue: true, in: settings.place, tokens: session),
                body: LoadBodies.allKeys)
        }
        guard settings.mix.needsRecords else { return 0 }
        for session in owners {
            for zone in settings.place.zones where !stop.isSet { made += try await fill(zone, of: session) }
        }
        return made
    }

    private func fill(_ zone: String, of session: LoadTokens) async throws(CommandFailure) -> Int {
        let records = LoadRecords(type: settings.recordType, zone: zone)
        var progress = ProgressLine()
        var made = 0
        for first in stride(from: 0, to: settings.records, by: Self.batch) where !stop.isSet {
            let numbers = Array(first..<min(first + Self.batch, settings.records))
            do {
                let missing = try await missing(numbers, records, session)
                if !missing.isEmpty { try await create(missing, records, session) }
                made += missing.count
            } catch {
                progress.abandon()
                throw error
            }
            progress.show("checked \(first + numbers.count) of \(settings.records) records, made \(made)")
        }
        if stop.isSet {
            progress.abandon()
        } else {
            progress.finish("\(settings.records) records in \(zone), \(made) of them made now")
        }
        return made
    }

    private func missing(
        _ numbers: [Int], _ records: LoadRecords, _ session: LoadTokens
    ) async throws(CommandFailure) -> [Int] {
        let answer = try await need(
            "looking records up", path("records/lookup", session),
            body: records.lookup(numbers, desiredKeys: ["checked"]))
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

    private func create(_ numbers: [Int], _ records: LoadRecords, _ session: LoadTokens) async throws(CommandFailure) {
        let answer = try await need(
            "making records", path("records/modify", session), body: records.create(named: numbers))
        for item in answer["records"]?.array ?? [] {
            // Another run that prepares meanwhile makes the same records.
            if let code = item["serverErrorCode"]?.string, code != ErrorCode.exists.rawValue,
                code != ErrorCode.conflict.rawValue
            {
                throw CommandFailure("making records: \(code) (\(item["reason"]?.string ?? ""))\(Self.hint(code))")
            }
        }
    }

    private func path(_ action: String, _ session: LoadTokens) -> String {
        LoadBodies.path(action, in: settings.place, tokens: session)
    }

    /// Sends a request that must succeed as a whole, again where the node says to come back later.
    /// - Parameter accepted: a code that is as good as success.
    @discardableResult
    func need(
        _ what: String, _ path: String, bearer: String? = nil, body: [UInt8], accepted: ErrorCode? = nil
    ) async throws(CommandFailure) -> JSONValue {
        var problem = ""
        for attempt in 0..<Self.attempts {
            let answer = try await client.exchange(.POST, path, bearer: bearer, body: body)
            let json = (try? answer.parsed()) ?? .null
            if answer.status == 200 || answer.status == 201 { return json }
            if let accepted, json["serverErrorCode"]?.string == accepted.rawValue { return json }
            problem = Self.failure(answer)
            // A change of leaders, or of a node's share of a rate, is over soon.
            guard answer.status == 429 || answer.status == 503, !stop.isSet else { break }
            let usual = min(1, 0.1 * Double(1 << min(attempt, 4)))
            await stop.sleep(for: .seconds(min(answer.retryAfterSeconds ?? usual, Self.pauseSecondsMax)))
        }
        throw CommandFailure("\(what): \(problem)")
    }
    private static let attempts = 60
    private static let pauseSecondsMax = 30.0

    static func failure(_ answer: ServiceResponse) -> String {
        let json = (try? answer.parsed()) ?? .null
        let code = json["serverErrorCode"]?.string ?? "no code"
        return "HTTP \(answer.status), \(code) (\(json["reason"]?.string ?? ""))\(hint(code))"
    }

    private static func hint(_ code: String) -> String {
        code == ErrorCode.badRequest.rawValue ? "; --prepare adds the record type and the zones that a load needs" : ""
    }
}

/// The users of a run, and a session for each, which is revoked when the run is over.
extension LoadPreparation {
    /// Sessions that cannot be revoked end by themselves so long after a run.
    private static let sessionSpareSeconds = 3_600
    private static let revokedAtOnce = 8

    /// - Throws: `CommandFailure`; the sessions made before are revoked then.
    func makeSessions(_ administrator: String) async throws(CommandFailure) -> [LoadTokens] {
        var sessions: [LoadTokens] = []
        var progress = ProgressLine()
        do throws(CommandFailure) {
            for number in 1...settings.users where !stop.isSet {
                sessions.append(try await makeSession("load-\(number)", administrator))
                progress.show("made \(number) of \(settings.users) sessions")
            }
            guard !sessions.isEmpty else { throw CommandFailure("stopped before the first user was made") }
        } catch {
            progress.abandon()
            await revoke(sessions)
            throw error
        }
        progress.finish("\(sessions.count) users, each with a session")
        return sessions
    }

    private func makeSession(_ name: String, _ administrator: String) async throws(CommandFailure) -> LoadTokens {
        let user = JSONValue.members(["name": .string(name)])
        // A user of an earlier run is as good.
        try await need(
            "making the user \(name)", "/admin/1/users", bearer: administrator, body: user.serialized(),
            accepted: .exists)
        let lifetime = Int(settings.bound.seconds ?? 3_600) + Self.sessionSpareSeconds
        let token = JSONValue.members([
            "kind": .string("session"), "container": .string(settings.place.container), "user": .string(name),
            "label": .string("load"), "lifetimeSeconds": .integer(Int64(lifetime)),
        ])
        let answer = try await need(
            "a session of \(name)", "/admin/1/tokens", bearer: administrator, body: token.serialized())
        guard let secret = answer["secret"]?.string, let id = answer["id"]?.string else {
            throw CommandFailure("a session of \(name): no secret came")
        }
        return LoadTokens(apiToken: tokens.apiToken, webAuthToken: secret, administrator: administrator, sessionID: id)
    }

    /// Revokes the sessions that `prepare` made: as long as they last their users count as active, and the container's
    /// limits grow with the number of those. One that cannot be revoked is left to end by itself, which is said.
    func revoke(_ sessions: [LoadTokens]) async {
        let made = sessions.filter { $0.sessionID != nil }
        guard !made.isEmpty else { return }
        let left = await withTaskGroup(of: Bool.self) { group in
            var next = made.makeIterator()
            for _ in 0..<Self.revokedAtOnce { if let session = next.next() { group.addTask { await revoke(session) } } }
            var left = 0
            while let isRevoked = await group.next() {
                if !isRevoked { left += 1 }
                // Where none can be revoked the rest is not tried either.
                if left < 20, let session = next.next() { group.addTask { await revoke(session) } }
            }
            while next.next() != nil { left += 1 }
            return left
        }
        guard left > 0 else { return }
        Console.note(
            "\(left) of the sessions that --prepare made could not be revoked; they end by themselves in about an hour")
    }

    private func revoke(_ session: LoadTokens) async -> Bool {
        guard let id = session.sessionID, let administrator = session.administrator else { return false }
        for target in client.targets.indices {
            let answer = try? await client.exchange(
                .DELETE, "/admin/1/tokens?id=\(PercentCoding.encode(id))", target: target, bearer: administrator)
            if let answer, answer.status == 200 || answer.status == 204 || answer.status == 404 { return true }
        }
        return false
    }
}

// The files of a run, and where they are sent to and fetched from.
extension LoadPreparation {
    /// URLs of each user, and as many files to fetch from them.
    private static let filesOfUser = 16

    /// Makes the files that downloads fetch, and asks for the URLs that the run's requests go to.
    /// - Returns: the sessions with these.
    func withFiles(_ sessions: [LoadTokens]) async throws(CommandFailure) -> [LoadTokens] {
        var sessions = sessions
        let operations = settings.mix.operations
        for place in sessions.indices where !stop.isSet {
            if operations.contains(.assetUpload) {
                sessions[place].uploadPaths = try await uploadPaths(sessions[place])
            }
            if operations.contains(.assetDownload) {
                sessions[place].downloadPaths = try await downloadPaths(sessions[place])
            }
        }
        return sessions
    }

    private var records: LoadRecords { LoadRecords(type: settings.recordType, zone: settings.place.zones[0]) }

    private func uploadPaths(_ session: LoadTokens) async throws(CommandFailure) -> [String] {
        let numbers = Array(0..<Self.filesOfUser)
        let answer = try await need(
            "URLs to upload to", path("assets/upload", session),
            body: records.uploads(numbers, bytes: settings.assetBytes))
        return try Self.paths(answer["tokens"]?.array?.compactMap { $0["url"]?.string }, numbers.count)
    }

    private func downloadPaths(_ session: LoadTokens) async throws(CommandFailure) -> [String] {
        let files = LoadFiles(settings, [session])
        let numbers = Array(0..<Self.filesOfUser)
        for (number, url) in zip(numbers, try await uploadPaths(session)) where !stop.isSet {
            let uploaded = try await need("uploading a file", url, body: Array(files.file(number).readableBytesView))
            let saved = try await need(
                "saving a file", path("records/modify", session),
                body: records.saveAsset(number, uploaded["singleFile"] ?? .null))
            if let code = saved["records"]?.array?.first?["serverErrorCode"]?.string {
                let reason = saved["records"]?.array?.first?["reason"]?.string ?? ""
                throw CommandFailure("saving a file: \(code) (\(reason))\(Self.hint(code))")
            }
        }
        let answer = try await need(
            "URLs to download from", path("records/lookup", session), body: records.assets(numbers))
        let urls = answer["records"]?.array?.compactMap { $0["fields"]?["photo"]?["value"]?["downloadURL"]?.string }
        return try Self.paths(urls, numbers.count)
    }

    /// Paths with their parameters: any node takes them.
    private static func paths(_ urls: [String]?, _ count: Int) throws(CommandFailure) -> [String] {
        let paths = (urls ?? []).compactMap { url -> String? in
            guard let scheme = url.range(of: "://") else { return url.hasPrefix("/") ? url : nil }
            return url[scheme.upperBound...].firstIndex(of: "/").map { String(url[$0...]) }
        }
        guard paths.count == count else { throw CommandFailure("URLs of files: \(count) were expected") }
        return paths
    }
}
