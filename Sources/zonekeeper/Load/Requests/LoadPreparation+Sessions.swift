import NIOCore
import NIOHTTP1
import RecordModel
import ServiceClient

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
        let user = JSONValue.object([.init("name", .string(name))])
        // A user of an earlier run is as good.
        try await need(
            "making the user \(name)", "/admin/1/users", bearer: administrator, body: user.serialized(),
            accepted: .exists)
        let lifetime = Int(settings.bound.seconds ?? 3_600) + Self.sessionSpareSeconds
        let token = JSONValue.object([
            .init("kind", .string("session")), .init("container", .string(settings.place.container)),
            .init("user", .string(name)), .init("label", .string("load")),
            .init("lifetimeSeconds", .integer(Int64(lifetime))),
        ])
        let answer = try await need(
            "a session of \(name)", "/admin/1/tokens", bearer: administrator, body: token.serialized())
        guard let secret = answer["secret"]?.string, let id = answer["id"]?.string else {
            throw CommandFailure("a session of \(name): no secret came")
        }
        return LoadTokens(
            apiToken: tokens.apiToken, webAuthToken: secret, administrator: administrator, sessionID: id)
    }

    /// Revokes the sessions that `prepare` made: as long as they last their users count as active, and the container's limits grow with
    /// the number of those. One that cannot be revoked is left to end by itself, which is said.
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
        LoadOutput.note(
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
