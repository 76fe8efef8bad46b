import Admission
import Cluster
import Directory
import RecordModel
import RecordStore
import Service
import Wire

// What a client changes in the directory where nobody else does: it knows what becomes of each command, and what every
// node must say then.
extension Client {
    /// A command, what refuses it, and the office after it.
    struct OfficeStep: Sendable {
        var command: DirectoryCommand
        var refusal: ErrorCode?
        var after: Office
    }

    /// That other clients do not change.
    static let officeLimit = ContainerLimit.userRecords
    static let officeTime = SimulatedClock.wallOrigin

    /// Whether no clock is ever wrong by much.
    var areClocksAlwaysRight: Bool {
        let options = nodes[0].options
        return !options.faults.contains(.jump) && !options.hasLoneWrongClock && !options.isUpgraded
            && !options.hasLongDay
    }

    func useOffice() async {
        // Builds of before do not know all of these commands.
        if nodes[0].options.isUpgraded { return }
        if !office.isMade { await makeOffice() }
        for _ in 0..<world.random(2...5) where !isEnding && office.isMade {
            guard await take(nextStep()) else { return }
            await inspectOffice()
            for _ in 0..<world.random(0...2) { await knock() }
            if world.chance(35) { await knockSlowly() }
            if world.chance(5) { await resetDatabase() }
            if world.chance(30) { await saveToProduction() }
            if world.chance(25) { await signInByPassword() }
            if world.chance(25) { await signInMeanwhile() }
        }
    }

    /// Has a command done, which may be the end of the office.
    /// - Returns: whether the office goes on, and it is known what came of the command.
    func take(_ step: OfficeStep) async -> Bool {
        guard await perform(step) else { return false }
        if !office.isPurged { return true }
        purgedOffices.append(office)
        leaveOffice()
        return false
    }

    func leaveOffice() {
        officeSerial += 1
        office = Office(client: number, serial: officeSerial)
    }

    private func misjudged(_ text: String) {
        recorder.violated("client \(number): office \(office.container): \(text)")
        leaveOffice()
    }

    private func makeOffice() async {
        var step = OfficeStep(
            command: .createContainer(name: office.container, time: Self.officeTime), after: office)
        step.after.isMade = true
        step.after.isShortLived = mayDeleteOffice && world.chance(50)
        guard await perform(step) else { return leaveOffice() }
        office.keeper = await keep()
        if let keeper = office.keeper { office.keeperToken = await follow(office.store, since: nil, to: keeper) }
        // Somebody to begin with.
        for _ in 0..<2 where office.isMade {
            guard await perform(newUser()), await perform(newToken()) else { return }
        }
    }

    /// Has a command done.
    /// - Returns: whether it is known what came of it.
    private func perform(_ step: OfficeStep) async -> Bool {
        let command = step.command
        let answer = await ask(repeats: false, triesMax: 3) { visit throws(RequestFailure) in
            try await visit.settle(command)
        }
        switch answer {
        case .answered(.done, _):
            guard step.refusal == nil else {
                misjudged("\(command) is done, and must be refused")
                return false
            }
            office = step.after
            world.met(.administered)
        case .answered(.refused(let error), _):
            guard step.refusal == error.code else {
                misjudged("\(command) is refused: \(error)")
                return false
            }
        case .failed, .nothing(mayHaveBeenDone: true):
            leaveOffice()
            return false
        case .nothing(mayHaveBeenDone: false): return false
        }
        return true
    }

    /// Asks a node that relies on its directory what it says.
    func inspectOffice(triesMax: Int = 2) async {
        moveOn()
        let office = office
        let (lockouts, limit) = (areClocksAlwaysRight, world.random(1...5))
        let own = Self.officeLimit
        let answer = await ask(repeats: true, triesMax: triesMax) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            var inspection = OfficeInspection(office)
            inspection.look(at: visit.node.directory.snapshot, own: own)
            if let fault = inspection.fault { return fault }
            return try await visit.service.accounts.read { rows in
                var inspection = OfficeInspection(office)
                try inspection.look(at: rows, withLockouts: lockouts, limit: limit)
                return inspection.fault ?? ""
            }
        }
        if case .answered(let fault, _) = answer, !fault.isEmpty { misjudged(fault) }
    }

    /// Looks at it for the last time.
    func readBackOffice() async {
        guard office.isMade else { return }
        for _ in nodes where office.isMade { await inspectOffice(triesMax: 5) }
        if office.isMade { await resetDatabase() }
    }

    /// Has the container reset: of a database that had a zone nothing is left then, and its token is not followed,
    /// whatever is made there afterwards.
    private func resetDatabase() async {
        guard office.isMade, office.deleted == nil, let version = office.schemas[.development]?.version else { return }
        let database = DatabaseKey(
            container: office.container, environment: .development, scope: .private, owner: "_resident")
        guard await makeZone("home", in: database),
            case .answered(let page, _) = await databaseFeed(database, after: nil),
            await perform(resetStep(expectedVersion: version))
        else { return }
        if world.chance(70) {
            for name in ["garden", "garage"] { guard await makeZone(name, in: database) else { return } }
        }
        switch await databaseFeed(database, after: page.token) {
        case .failed(let failure) where failure.error.reason.hasPrefix("client knowledge differs"):
            world.met(.resetDatabase)
        case .failed(let failure): misjudged("a token from before the reset is refused: \(failure.error)")
        case .answered(let page, _): misjudged("a token from before the reset is followed to \(page)")
        case .nothing: break
        }
        let listed = await ask(as: Workbook.Person(database.owner), of: database) { _, request throws(RequestFailure) in
            try await Zones(request).list()
        }
        if case .answered(let zones, _) = listed, zones.contains(where: { $0.name == "home" }) {
            misjudged("after the reset there is \(zones)")
        }
    }

    /// - Returns: whether it is known to be there.
    private func makeZone(_ name: String, in database: DatabaseKey) async -> Bool {
        let form = Array(
            #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"\#(name)"}}}]}"#.utf8)
        let made = await ask(as: Workbook.Person(database.owner), of: database) { _, request throws(RequestFailure) in
            let operation = try ZonesModifyRequest(sent: form).operations[0]
            return try await Zones(request).modify(operation, number: 0)
        }
        if case .answered = made { return true }
        return false
    }

    /// A user saves a record of a type that production does not have: no save brings it there.
    private func saveToProduction() async {
        guard office.isMade, office.deleted == nil else { return }
        let database = DatabaseKey(
            container: office.container, environment: .production, scope: .private, owner: "_resident")
        let body = Array(
            #"{"operations":[{"operationType":"create","record":{"recordName":"first","recordType":"Grown"}}]}"#.utf8)
        let answer = await ask(as: Workbook.Person(database.owner), of: database) { _, request throws(RequestFailure) in
            try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        guard case .answered(let result, _) = answer else {
            if case .failed(let failure) = answer { misjudged("a save to production is refused: \(failure.error)") }
            return
        }
        guard case .failed(let error, _)? = result.items.first?.outcome, error.code == .badRequest else {
            return misjudged("a save of a new type to production comes to \(result)")
        }
        world.met(.refusedGrowth)
        await inspectOffice()
    }

    private func databaseFeed(_ database: DatabaseKey, after token: String?) async -> Asked<ChangeFeeds.DatabasePage> {
        await ask(as: Workbook.Person(database.owner), of: database) { _, request throws(RequestFailure) in
            try await ChangeFeeds(request).database(after: token, limit: 9)
        }
    }

    // MARK: Steps

    /// A clock that is ahead by a week may purge what was deleted.
    private var mayDeleteOffice: Bool { nodes[0].options.wrongDaysPercent == 0 && !nodes[0].options.hasLongDay }

    func nextStep() -> OfficeStep {
        if office.deleted != nil { return stepOfDeleted() }
        if office.isShortLived, world.chance(30) { return deletionStep() }
        return switch world.random(0...35) {
        case 0..<3: newUser()
        case 3..<6: changedUser()
        case 6: endedUser()
        case 7..<9: passwordStep()
        case 9..<12: newToken()
        case 12..<15: newSession()
        case 15..<17: revocation()
        case 17..<19: keyStep()
        case 19..<22: roleStep()
        case 22..<25: schemaStep()
        case 25..<27: limitStep()
        case 27: detailStep()
        case 28..<30: relabelStep()
        case 30..<32: teamStep()
        case 32: providerStep()
        default: mayDeleteOffice ? deletionStep() : newToken()
        }
    }

    func newID(_ kind: String) -> String { "\(office.prefix)\(kind)\(newValue())" }

    var someAccount: String {
        office.accounts.keys.sorted().randomElement(using: &world.generator) ?? "\(office.prefix)nobody"
    }

    func has(_ account: String) -> Bool { office.accounts[account] != nil }

    func some(_ kinds: Set<TokenFilter.Kind>) -> Token? {
        office.tokens.values.filter { kinds.contains($0.kind.filterKind) }.sorted { $0.id < $1.id }
            .randomElement(using: &world.generator)
    }

    func step(
        _ command: DirectoryCommand, _ refusal: ErrorCode? = nil, _ effect: (inout Office) -> Void
    ) -> OfficeStep {
        var after = office
        effect(&after)
        return OfficeStep(command: command, refusal: refusal, after: after)
    }

    private func isTaken(_ email: String?, _ identity: ExternalIdentity?, besides id: String) -> Bool {
        office.accounts.values.contains { other in
            other.id != id
                && (email != nil && other.email?.lowercased() == email?.lowercased()
                    || identity != nil && other.identity == identity)
        }
    }

    private var someEmail: String {
        let name = "mail\(world.random(0...2))@\(office.prefix)"
        return world.chance(30) ? name.uppercased() : name
    }

    private var someIdentity: ExternalIdentity {
        ExternalIdentity(issuer: "https://issuer", subject: "\(office.prefix)\(world.random(0...2))")
    }

    func newUser() -> OfficeStep {
        var account = Account(
            id: newID("a"), name: "\(office.prefix)user\(world.random(0...2))", created: Self.officeTime)
        if world.chance(50) { account.email = someEmail }
        if world.chance(50) { account.identity = someIdentity }
        if world.chance(60) { account.password = Self.passwordHash(world.pick(Self.officePasswords)) }
        let isTaken =
            office.account(named: account.name) != nil
            || isTaken(account.email, account.identity, besides: account.id)
        return step(.createAccount(account), isTaken ? .exists : nil) {
            $0.accounts[account.id] = account
            $0.everyID.insert(account.id)
        }
    }

    private func changedUser() -> OfficeStep {
        let name = "\(office.prefix)user\(world.random(0...2))"
        var changes = AccountChanges()
        if world.chance(50) { changes.email = world.chance(30) ? "" : someEmail }
        if world.chance(30) { changes.givenName = world.chance(30) ? "" : newValue() }
        if world.chance(30) { changes.familyName = newValue() }
        if world.chance(30) { changes.isDiscoverable = world.chance(50) }
        if world.chance(40) { changes.identity = world.chance(30) ? ExternalIdentity.none : someIdentity }
        guard var account = office.account(named: name) else {
            return step(.updateAccount(name: name, changes), .notFound) { _ in }
        }
        if let email = changes.email { account.email = email.isEmpty ? nil : email }
        if let given = changes.givenName { account.givenName = given.isEmpty ? nil : given }
        if let family = changes.familyName { account.familyName = family }
        if let isDiscoverable = changes.isDiscoverable { account.isDiscoverable = isDiscoverable }
        if let identity = changes.identity { account.identity = identity == .none ? nil : identity }
        let isTaken = isTaken(account.email, account.identity, besides: account.id)
        return step(.updateAccount(name: name, changes), isTaken ? .exists : nil) { $0.accounts[account.id] = account }
    }

    private func endedUser() -> OfficeStep {
        let name = "\(office.prefix)user\(world.random(0...2))"
        guard let account = office.account(named: name) else {
            return step(.deleteAccount(name: name), .notFound) { _ in }
        }
        return step(.deleteAccount(name: name)) { office in
            office.accounts[account.id] = nil
            office.failures[account.id] = nil
            office.removeTokens { $0.kind.accountID == account.id }
            office.keys = office.keys.filter { $1.accountID != account.id }
            office.members = office.members.filter { $0.accountID != account.id }
        }
    }

    static func passwordHash(_ password: String) -> PasswordHash {
        // As little work as can be.
        var hash = PasswordHash(salt: [UInt8](repeating: 7, count: 16), logN: 1, r: 1, p: 1, hash: [])
        hash.hash = PasswordHasher.derive(Array(password.utf8), hash, byteCount: 32) ?? []
        return hash
    }

    static let officePasswords = ["password-one", "password-two"]

    private func passwordStep() -> OfficeStep {
        let id = someAccount
        guard let account = office.accounts[id] else { return newUser() }
        switch world.random(0...5) {
        case 0:
            return step(.noteSignInFailure(accountID: id, time: timeOfFailure)) {
                $0.failures[id, default: 0] += 1
            }
        case 1: return step(.administration(.unlock(account: account.name))) { $0.failures[id] = nil }
        default:
            let hash = world.chance(80) ? Self.passwordHash(world.pick(Self.officePasswords)) : nil
            let endsSessions = world.chance(40)
            return step(.setPassword(account: account.name, hash, endsSessions: endsSessions)) { office in
                office.accounts[id]?.password = hash
                office.failures[id] = nil
                if endsSessions { office.removeTokens { $0.kind.accountID == id } }
            }
        }
    }

    private var timeOfFailure: Int64 { Int64(world.now / World.millisecond) + Self.officeTime }
}
