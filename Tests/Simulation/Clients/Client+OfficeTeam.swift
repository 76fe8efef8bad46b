import Admission
import Cluster
import Directory
import KeyValueStore
import RecordModel
import Service

// What a client changes of who administers, and the end of its container.
extension Client {
    func teamStep() -> OfficeStep {
        let name = "\(office.prefix)boss\(world.random(0...2))"
        let known = office.team[name]
        let own = office.tokens.values.first { $0.kind == .administrator(name: name) }
        let isThere = known != nil || own != nil
        switch world.random(0...6) {
        case 0: return newAdministrator(name, known, isThere)
        case 1:
            let role = world.pick([AdministratorRole.viewer, .developer, .admin])
            return step(
                .administration(.changeAdministrator(name: name, role: role, containers: nil)),
                isThere ? nil : .notFound
            ) { office in
                var changed = known ?? Administrator(name: name, role: .admin, created: own?.created ?? 0)
                changed.role = role
                office.team[name] = changed
            }
        case 2:
            return step(.console(.remove(name: name)), isThere ? nil : .notFound) { office in
                office.team[name] = nil
                office.removeTokens { $0.kind.administratorName == name }
            }
        case 3: return administratorToken(name, own)
        case 4: return linkStep(name, isThere)
        default: return actingStep(name, isThere)
        }
    }

    private func newAdministrator(_ name: String, _ known: Administrator?, _ isThere: Bool) -> OfficeStep {
        let new = Administrator(
            name: name, role: world.pick([.viewer, .developer, .admin]),
            containers: world.chance(50) ? [office.container] : nil, created: Self.officeTime)
        let isRepeat = known == new
        return step(.console(.save(new, isNew: true)), isThere && !isRepeat ? .exists : nil) { $0.team[name] = new }
    }

    private func administratorToken(_ name: String, _ own: Token?) -> OfficeStep {
        let (id, secret) = (newID("b"), newID("secret"))
        let token = Token(
            id: id, secretHash: Token.hash(ofSecret: secret), kind: .administrator(name: name), label: "",
            created: Self.officeTime)
        return step(.createToken(token), own == nil ? nil : .exists) { office in
            office.add(token)
            office.secrets[id] = secret
        }
    }

    /// Makes a link to the console, or begins a session by one.
    private func linkStep(_ name: String, _ isThere: Bool) -> OfficeStep {
        let expires = Self.officeTime + 30 * 86_400_000
        let (id, secret) = (newID("c"), newID("secret"))
        if let link = some([.consoleLink]), case .consoleLink(let owner, _) = link.kind {
            let session = Token(
                id: id, secretHash: Token.hash(ofSecret: secret), kind: .console(name: owner, expires: expires),
                label: "", created: Self.officeTime + 5)
            let command = ConsoleCommand.beginSession(session, .link(secretHash: link.secretHash), replacing: "")
            return step(.console(command)) { office in
                office.tokens[link.id] = nil
                office.add(session)
                office.team[owner]?.lastSignIn = session.created
            }
        }
        let link = Token(
            id: id, secretHash: Token.hash(ofSecret: secret), kind: .consoleLink(name: name, expires: expires),
            label: "", created: Self.officeTime)
        return step(.console(.makeLink(link)), isThere ? nil : .authenticationFailed) { $0.add(link) }
    }

    private func actingStep(_ name: String, _ isThere: Bool) -> OfficeStep {
        if world.chance(30), let token = some([.acting]) {
            return step(.administration(.endActing(token))) { $0.tokens[token.id] = nil }
        }
        let account = someAccount
        let acting = ActingSession(
            by: name, in: "", as: account, of: office.key(.development), reason: "r", mayWrite: false,
            expires: Self.officeTime + 30 * 86_400_000)
        let id = newID("u")
        let token = Token(
            id: id, secretHash: Token.hash(ofSession: id), kind: .acting(acting), label: "", created: Self.officeTime)
        let refusal: ErrorCode? = !has(account) ? .notFound : isThere ? nil : .authenticationFailed
        return step(.administration(.beginActing(token)), refusal) { office in
            office.removeTokens { other in
                if case .acting(let earlier) = other.kind { earlier.administrator == name } else { false }
            }
            office.add(token)
        }
    }

    // MARK: The end of a container

    func deletionStep() -> OfficeStep {
        let time = Int64(world.now / World.millisecond) + Self.officeTime
        return step(.endContainer(office.container, .delete(time: time))) { $0.deleted = time }
    }

    func stepOfDeleted() -> OfficeStep {
        let name = office.container
        let deleted = office.deleted ?? 0
        let week: Int64 = 7 * 86_400_000
        return switch world.random(0...(office.isShortLived ? 22 : 12)) {
        case 10...22: step(.endContainer(name, .purge(time: deleted + week))) { $0.isPurged = true }
        case 0: step(.createContainer(name: name, time: deleted), .exists) { _ in }
        case 1: step(.setLimits(container: name, [LimitChange(Self.officeLimit, 5_000)]), .notFound) { _ in }
        case 2: step(.endContainer(name, .restore(time: deleted + week)), .conflict) { _ in }
        case 3: step(.endContainer(name, .purge(time: deleted + week - 1)), .notFound) { _ in }
        case 4: step(.endContainer(name, .remove), .notFound) { _ in }
        case 5: step(.endContainer(name, .delete(time: deleted)), .notFound) { _ in }
        default: step(.endContainer(name, .restore(time: deleted + week - 1))) { $0.deleted = nil }
        }
    }

    // MARK: The end of what was in it

    /// Sets a key in a store of the office's container.
    func keep() async -> ChangeTag? {
        let store = office.store
        let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await Preferences(visit.service, store).set(
                [.init(key: "kept", value: .bool(true))], idempotencyKey: nil, device: nil, by: visit.deadline)
        }
        guard case .answered(.applied(let versions, let usage), _) = answer else { return nil }
        if usage.keys != 1 {
            recorder.violated("client \(number): a store of \(office.container) has \(usage.keys) keys, not one")
        }
        return versions.first ?? nil
    }

    /// Follows the feed of a store that has one key.
    /// - Returns: where it goes on.
    func follow(_ store: StoreKey, since token: String?, to version: ChangeTag) async -> String? {
        let answer = await ask(repeats: true, triesMax: 3) { visit throws(RequestFailure) in
            try await Preferences(visit.service, store).changes(since: token, limit: 2, by: visit.deadline)
        }
        guard case .answered(let page, _) = answer, let next = page.cursor else { return nil }
        if page.changes != 1 || page.hasMore {
            recorder.violated("client \(number): a store that has \(version) alone shows \(page.changes) changes")
        }
        return String(decoding: next, as: UTF8.self)
    }

    /// Follows a token of a store that is gone with its container, in the store that was made since.
    private func followFormer(_ office: Office) async {
        guard let token = office.keeperToken else { return }
        let answer = await ask(repeats: true, triesMax: 5) { visit throws(RequestFailure) in
            try await Preferences(visit.service, office.store).changes(since: token, limit: 2, by: visit.deadline)
        }
        switch answer {
        case .nothing: break
        case .failed(let failure) where failure.details == .expiredToken(.restored): break
        case .failed(let failure):
            recorder.violated("a token of \(office.container), from before its purge, is refused: \(failure.error)")
        case .answered:
            recorder.violated("a token of \(office.container), from before its purge, is followed")
        }
    }

    /// Looks, once nothing goes wrong any more, whether anything is left of containers that were purged.
    func readBackPurged() async {
        for purged in purgedOffices {
            office = purged
            let answer = await ask(repeats: true, triesMax: 5) { visit throws(RequestFailure) in
                let directory = try await visit.service.cluster.newestDirectory()
                // It may take some time.
                if directory.deletions[purged.container] != nil { return nil as String? }
                return try await visit.service.accounts.read { rows in
                    let tokens = try rows.tokens(TokenFilter(container: purged.container), after: nil, limit: 9).tokens
                    let keys = directory.serverKeys.filter { $0.container == purged.container }
                    let members = directory.members(container: purged.container, environment: .development)
                    let history = try rows.schemaHistory(of: purged.key(.development), limit: 9)
                    return directory.hasContainer(purged.container) || !tokens.isEmpty || !keys.isEmpty
                        || !members.isEmpty || !history.isEmpty || directory.userCount(of: purged.container) > 0
                        || !directory.overrides(of: purged.container).isEmpty
                        ? "\(tokens) \(keys) \(members) \(history)" : ""
                }
            }
            guard case .answered(let left?, _) = answer else { continue }
            if !left.isEmpty { recorder.violated("of \(purged.container), which was purged, there is \(left)") }
            world.met(.purgedContainer)
            guard await settle([.createContainer(name: purged.container, time: Self.officeTime)]),
                let old = purged.keeper, let new = await keep()
            else { continue }
            if new.incarnation <= old.incarnation {
                recorder.violated("a store of \(purged.container), made again, gives \(new) after \(old)")
            }
            await followFormer(purged)
        }
    }
}
