import Admission
import Cluster
import Crypto
import Directory
import Glibc
import RaftCore
import RecordModel
import Service
import Wire

// What a client does to find out whom nodes let in, and by which limits.
extension Client {
    func tryCredentials() async {
        switch world.random(0...13) {
        case 0..<2: await endAllSessions()
        case 2..<6: await repeatSignature()
        case 6..<8: await signForSeveralLeaders()
        case 8..<10: await keepToken()
        case 10: await shareSession()
        default: await changeLimits()
        }
    }

    private static let look: @Sendable (Visit) async throws(RequestFailure) -> Bool = { visit throws(RequestFailure) in
        try await visit.enter { _ throws(RequestFailure) in true }
    }

    /// Has an administrator's commands done, one after the other.
    /// - Returns: whether all of them are known to be done.
    func settle(_ commands: [DirectoryCommand]) async -> Bool {
        for command in commands {
            let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
                try await visit.settle(command)
            }
            guard case .answered(.done, _) = answer else { return false }
        }
        return true
    }

    /// Begins sessions of an account of its own and ends all of them at once.
    private func endAllSessions() async {
        let account = "guest-\(newValue())"
        let sessions = (1...3).map { UserSession("\(account)-\($0)") }
        guard
            await settle(
                [.createAccount(Account(id: account, name: account, created: SimulatedClock.wallOrigin))]
                    + sessions.map { .createToken(Place.session($0.id, account)) })
        else { return }
        for session in sessions {
            for _ in 0..<2 {
                _ = await ask(repeats: true, triesMax: 2, as: session, Self.look)
                moveOn()
            }
        }
        guard await settle([.setPassword(account: account, nil, endsSessions: true)]) else { return }
        for session in sessions {
            for _ in 0..<2 {
                if case .answered = await ask(repeats: true, triesMax: 1, as: session, Self.look) {
                    return recorder.violated(
                        "client \(number): a node takes session \(session.id), which was ended with all others before")
                }
                moveOn()
            }
        }
    }

    /// Uses a session's second token, and a long time later the first one at the same node.
    private func keepToken() async {
        let id = "kept-\(newValue())"
        guard await settle([.createToken(Place.session(id, Place.accounts[0]))]) else { return }
        let node = nodes[world.random(0...(nodes.count - 1))]
        let session = UserSession(id)
        let first = UserSession(id)
        for turn in 0..<3 {
            // What the node tells the others of the last token may be lost.
            if turn == 2, world.chance(60), recorder.mayDisturb(World.second) {
                node.network.breakConnections(of: node.number)
                await sleep(world.milliseconds(0...60))
            }
            guard case .value = await ServerCall.make(to: node, as: session, recorder, Self.look) else { return }
            if turn == 0 { first.take(session.token) }
            await sleep(2 * World.second)
        }
        let end = world.now + UInt64(world.random(75...100)) * World.second
        guard let process = node.process, let token = first.token, token != session.token else { return }
        recorder.keptTokens.append(
            KeptToken(session: id, token: token, node: node, process: process, replaced: world.now))
        if world.chance(50) { return }
        while world.now < end, !isEnding { await sleep(5 * World.second) }
        guard node.process === process, world.now >= end else { return }
        if case .value = await ServerCall.make(to: node, as: first, recorder, Self.look) {
            recorder.violated(
                "client \(number): node \(node.number) takes a token of session \(id) that was replaced before the grace time"
            )
        }
    }

    /// Once the nodes hear each other again, none of them takes a token that was replaced long before at another.
    func tryKeptTokens() async {
        let end = world.now
        let kept = recorder.keptTokens.filter {
            $0.node.process === $0.process && $0.replaced + 80 * World.second < end
        }
        if kept.isEmpty { return }
        await sleep(8 * World.second)
        for token in kept {
            // A node that was started since has been told all that it missed, too.
            for node in nodes.sorted(by: { $0.upSince > $1.upSince })
            where node !== token.node && node.upSince < end && node.knows(token.node) {
                guard token.node.process === token.process, token.node.knows(node) else { continue }
                let session = UserSession(token.session)
                session.take(token.token)
                guard case .value = await ServerCall.make(to: node, as: session, recorder, Self.look) else { continue }
                recorder.violated(
                    "node \(node.number) takes a token of session \(token.session), long replaced at node \(token.node.number)"
                )
            }
        }
    }

    /// Lets two apps have one session: while one gets newer tokens, the other one's is good for the grace time.
    func shareSession() async {
        let id = "shared-\(newValue())"
        guard await settle([.createToken(Place.session(id, Place.accounts[0]))]) else { return }
        let node = world.pick(nodes.filter { $0.isEnlisted && !$0.isRetired })
        // At the very end there is time.
        let isLast = isEnding
        let one = UserSession(id)
        let process = node.process
        // The second one replaces the token of the other app.
        var replaced: UInt64 = 0
        for seconds in [25...30, 37...40] {
            replaced = world.now
            guard case .value = await ServerCall.make(to: node, as: one, recorder, Self.look) else { return }
            let end = world.now + UInt64(world.random(seconds)) * World.second
            while world.now < end, !isEnding || isLast { await sleep(5 * World.second) }
        }
        guard node.process === process, !isEnding || isLast else { return }
        let answer = await ServerCall.make(to: node, as: UserSession(id), recorder, Self.look)
        if case .failed(let failure) = answer, world.now < replaced + 55 * World.second {
            recorder.violated(
                "client \(number): node \(node.number) refused a token of session \(id) within the grace time: \(failure.error)"
            )
        }
    }

    // MARK: Signatures

    /// Sends a signed request that changes something, and then copies of it to other nodes, which may not let them in.
    private func repeatSignature() async {
        let body = Array(newValue().utf8)
        // Its own clock is right, and other clients' may be ahead by a little.
        let time = world.wallMilliseconds + Int64(world.random(0...3_000))
        guard let signed = Place.signed(body, at: time + recorder.commonOffset) else { return }
        let enter: @Sendable (Visit) async throws(RequestFailure) -> Bool = { visit throws(RequestFailure) in
            try await visit.enter(signed: signed)
        }
        var isUsed = false
        for _ in 0..<4 {
            let answer = await ask(repeats: false, triesMax: 1, enter)
            if case .answered = answer {
                if isUsed {
                    return recorder.violated("client \(number): a signature is let in a second time")
                }
                isUsed = true
                // Each leader begins with an empty memory of signatures.
                let map = nodes.lazy.compactMap { $0.running?.service.node.map }.first
                if let map, world.chance(40), recorder.mayDisturb(5 * World.second) {
                    recorder.depose(RateExchange.group(of: Place.container, in: map))
                }
            }
            // Without an answer it may have been let in, or may have waited for its date at a node that ended.
            moveOn()
            if isEnding { return }
            await sleep(world.milliseconds(world.chance(70) ? 1...2_000 : 5_000...20_000))
        }
    }

    /// Signs requests while leaders follow each other, of whom some led before, and sends copies of them to each.
    func signForSeveralLeaders() async {
        var used: [SignedRequest] = []
        for _ in 0..<7 where !isEnding {
            for signed in used {
                guard case .answered = await enter(signed), recorder.wereClocksRight(120 * World.second) else {
                    continue
                }
                return recorder.violated("client \(number): a signature is let in a second time, by a later leader")
            }
            // A new leader takes only what is dated a while after it began to lead.
            let time = world.wallMilliseconds + 2_500
            let signed = Place.signed(Array(newValue().utf8), at: time + recorder.commonOffset)
            if let signed, case .answered = await enter(signed) {
                used.append(signed)
            }
            let map = nodes.lazy.compactMap { $0.running?.service.node.map }.first
            guard let map, recorder.mayDisturb(5 * World.second) else { return }
            recorder.depose(RateExchange.group(of: Place.container, in: map))
            // Who was deposed may lead again soon.
            await sleep(world.milliseconds(700...4_000))
        }
    }

    private func enter(_ signed: SignedRequest) async -> Asked<Bool> {
        await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in try await visit.enter(signed: signed) }
    }

    // MARK: Limits

    private static let limits: [ContainerLimit] = [
        .transferBytesPerMonth, .transferBytesPerUser, .transferBytesPerMonthMax, .databaseBytes, .databaseBytesPerUser,
        .databaseBytesMax,
    ]

    /// Ends the keeping of earlier versions of records: maintenance removes those that there are.
    func stopKeepingVersions() async {
        guard recorder.limits.versionsKept > 0 else { return }
        _ = await settle([.setLimits(container: Place.container, [LimitChange(.recordVersionDays, nil)])])
    }

    /// A limit that nothing here comes near to, and a value for it. Each client has a limit of its own.
    func newLimit() -> (ContainerLimit, Int64) {
        let limit = Self.limits[number % Self.limits.count]
        return (limit, limit.standard + Int64(world.random(1...1_000_000)))
    }

    /// Changes a limit that nothing here comes near to, of the cluster or the container, and looks whether nodes know.
    private func changeLimits() async {
        guard limitsDoubtfulUntil <= world.now else { return }
        let (limit, value) = newLimit()
        let container = world.chance(50) ? Place.container : nil
        let other = container == nil ? Place.container : nil
        guard
            await settle([
                .setLimits(container: other, [LimitChange(limit, nil)]),
                .setLimits(container: container, [LimitChange(limit, value)]),
            ])
        else {
            // A change on its way may come after the next one.
            limitsDoubtfulUntil = world.now + 60 * World.second
            return
        }
        for _ in 0..<3 {
            let answer = await ask(repeats: true, triesMax: 1) { visit throws(RequestFailure) in
                try await visit.requireDirectory()
                return visit.node.directory.snapshot.limits(of: Place.container)[limit]
            }
            if case .answered(let seen, _) = answer, seen != value {
                return recorder.violated(
                    "client \(number): a node relies on limit \(limit.rawValue) \(seen), which was set to \(value) before"
                )
            }
            moveOn()
        }
    }

    // MARK: The audit log

    /// Reads all of the audit log and holds its records against the chain of their hashes.
    func verifyAudit() async {
        var after: UInt64 = 0
        var last: AuditRecord?
        while true {
            let read = DirectoryRead.audit(after: after, limit: 500).encoded()
            let answer = await ask(repeats: true) { visit throws(RequestFailure) in
                do throws(ClusterError) {
                    return try await visit.node.router.read(read, from: .directory, by: visit.deadline)
                } catch {
                    throw RequestFailure(error)
                }
            }
            guard case .answered(let bytes, _) = answer, let page = try? AuditPage(decoding: bytes) else {
                return recorder.violated("the audit log cannot be read")
            }
            if let broken = page.firstBroken ?? AuditRecord.verify(page.records, following: last) {
                return recorder.violated("record \(broken) of the audit log does not follow the one before it")
            }
            last = page.records.last ?? last
            guard page.moreComing, let last else { return }
            after = last.sequence
        }
    }
}

/// A token of a session that a newer one replaced at a node.
struct KeptToken {
    let session: String
    let token: String
    let node: SimulatedNode
    /// That of the node, which remembers it.
    let process: ProcessLife
    let replaced: UInt64
}

extension SimulatedNode {
    /// Whether it runs, and counts another node as a member.
    fileprivate func knows(_ other: SimulatedNode) -> Bool {
        running?.service.node.map.nodes.contains { $0.id == UInt64(other.number) } ?? false
    }
}

extension Place {
    /// The key of a server, the same in every run.
    private static let signingKey = try? P256.Signing.PrivateKey(rawRepresentation: [UInt8](repeating: 7, count: 32))
    private static let keyID = String(repeating: "5a", count: 32)
    /// What server-to-server keys reach.
    static let publicTarget = Target(container: container, environment: .development, needsUser: false)

    static var serverKey: ServerKey? {
        signingKey.map {
            ServerKey(
                id: keyID, container: container, environment: .development,
                publicKey: Array($0.publicKey.x963Representation), accountID: accounts[0], label: "server",
                created: SimulatedClock.wallOrigin)
        }
    }

    /// A request as a server signs it.
    static func signed(_ body: [UInt8], at milliseconds: Int64) -> SignedRequest? {
        var seconds = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let date =
            "\(parts.tm_year + 1_900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
        let path = "/database/1/\(container)/development/public/records/modify"
        let text = "\(date):\(Base64.encode(Array(SHA256.hash(data: body)))):\(path)"
        // Signatures are random. With one length all are as good as the same.
        while let made = try? signingKey?.signature(for: SHA256.hash(data: Array(text.utf8))).derRepresentation {
            guard made.count == 71 else { continue }
            let signature = try? RequestSignature(keyID: keyID, date: date, signature: Base64.encode(Array(made)))
            return signature.map { SignedRequest(signature: $0, target: path, body: body) }
        }
        return nil
    }
}

extension Visit {
    /// Has the service admit a signed request that changes something.
    func enter(signed: SignedRequest) async throws(RequestFailure) -> Bool {
        let scope = RequestScope(target: Place.publicTarget, rate: .requests, mayChangeData: true)
        var notes = RequestNotes()
        let credentials = Credentials(apiToken: nil, webAuthToken: nil, signed: signed)
        let precheck = try await service.identification.precheck(
            credentials, signed.signature, for: scope, address: nil)
        _ = try await service.admit(credentials, precheck, to: scope, address: nil, by: deadline, &notes)
        service.leave(scope)
        return true
    }
}
