import Admission
import Cluster
import Directory
import KeyValueStore
import RecordModel
import Service
import Wire

/// A device that waits for changes of a store of preferences, and what it was told.
final class WaitingDevice: @unchecked Sendable {
    // Touched on the simulation's thread only.
    /// Where it waits.
    var node: SimulatedNode
    /// Where its feed goes on; nil before its first page.
    private(set) var token: String?
    /// What it has of each key.
    private(set) var copy: [[UInt8]: String] = [:]
    /// The last change that it was told of.
    private(set) var newest: UInt64 = 0
    /// What is wrong with what it was told.
    var fault: String?
    /// When the call began in which it waits; nil where it is about to ask again.
    private(set) var waitsSince: UInt64?
    private(set) var isOver = false
    private var ticket: WatchTicket?
    private var call = 0

    init(at node: SimulatedNode) { self.node = node }

    /// It asks a node, and gives up what it asked before.
    func begin() -> Int {
        call += 1
        (waitsSince, ticket) = (nil, nil)
        return call
    }

    /// A node took its question.
    func wait(in call: Int, _ ticket: WatchTicket, at time: UInt64) {
        if isIn(call) { (waitsSince, self.ticket) = (time, ticket) }
    }

    func isIn(_ call: Int) -> Bool { call == self.call && !isOver }

    /// It waits no more.
    func end() {
        isOver = true
        ticket?.leave()
    }

    /// It is told of changes.
    func take(_ page: PreferenceWatch.Page) {
        guard let elements = (try? JSONParser.parse(page.json))?["changes"]?.array else {
            fault = "a page cannot be read"
            return
        }
        for element in elements {
            guard let change = KeyringElement(element) else {
                fault = "a page has a change that cannot be read"
                return
            }
            let sequence = change.version.sequence
            if sequence <= newest { fault = "it is told of \(change.text) after \(newest)" }
            newest = sequence
            copy[Array(change.key.utf8)] = change.hasValue ? change.text : nil
        }
        if elements.isEmpty != page.isEmpty { fault = "a page of \(elements.count) changes is empty: \(page.isEmpty)" }
        token = page.token
    }
}

// What devices hear that wait for changes of preferences.
extension Client {
    /// How long a change may take to be heard of where nothing goes wrong.
    private static let hearingMax = 12 * World.second
    private static let waitSeconds: UInt64 = 30

    /// Has devices wait for changes at several nodes, and changes the store; each device hears of all of it soon.
    func awaitKeyring(changes: Int) async {
        guard keyring.store.environment == .development, !keyring.isWide, !nodes[0].options.isUpgraded,
            let session = await keyringSession()
        else { return }
        let store = keyring.store
        let devices = nodes.filter { $0.running != nil && !$0.mayLeave }.shuffled(using: &world.generator).prefix(3)
            .map { WaitingDevice(at: $0) }
        await withTaskGroup(of: Void.self) { group in
            for device in devices {
                group.addTask { [self] in await attend(device, store, session) }
            }
            for place in 0..<changes where keyring.store == store {
                // What a first read leaves out is told to nobody: the first change sets a key.
                await change(mayDelete: place > 0)
                // Who has just heard of one looks whether there is more as the next one comes.
                if place > 0 {
                    await sleep(world.microseconds(0...(6_000 + 2 * nodes[0].network.conditions.delayMax)))
                    await change(mayDelete: true)
                }
                guard keyring.store == store, await haveHeard(devices, session) else { break }
                world.met(.heardOfChange)
            }
            for device in devices { device.end() }
        }
        guard keyring.store == store, let fault = devices.lazy.compactMap(\.fault).first else { return }
        misled("a device waits for changes: \(fault)")
    }

    private func change(mayDelete: Bool) async {
        let value = mayDelete && world.chance(25) ? nil : keyringValue()
        let write = KeyValueCommand.Write(key: world.pick(Self.ringNames), value: value)
        await send(Keyring.Batch(writes: [write], key: newKey(), device: "d"))
    }

    /// Begins a session of the store's user.
    private func keyringSession() async -> String? {
        if let session = keyring.session { return session }
        let (account, store) = (keyring.account, keyring.store)
        let session = "\(account)-waits"
        guard
            await settle([
                .createAccount(Account(id: account, name: account, created: SimulatedClock.wallOrigin)),
                .createToken(Place.session(session, account)),
            ]), keyring.store == store
        else { return nil }
        keyring.session = session
        return session
    }

    /// Asks one node after the other, until the device waits no more.
    private func attend(_ device: WaitingDevice, _ store: StoreKey, _ session: String) async {
        let size = world.random(1...6)
        while !device.isOver {
            let call = device.begin()
            // Always by the first token of the session, which no newer one replaces that way.
            let answer = await ServerCall.make(
                to: device.node, as: UserSession(session), recorder,
                patienceMilliseconds: (Self.waitSeconds + 5) * 1_000
            ) { visit throws(RequestFailure) in
                try await visit.wait(device, in: call, for: store, limit: size, seconds: Self.waitSeconds)
            }
            _ = device.begin()
            if case .failed(let failure) = answer { device.fault = "its question is refused: \(failure.error)" }
            if device.fault != nil { return }
            if device.isOver { return }
            device.node = world.pick(nodes)
            await sleep(world.milliseconds(100...1_500))
        }
    }

    /// Waits until all devices have heard of the last change.
    /// - Returns: whether they have; false also where nothing can be said of it.
    private func haveHeard(_ devices: [WaitingDevice], _ session: String) async -> Bool {
        let begun = world.now
        while world.now < begun + 40 * World.second {
            if devices.contains(where: { $0.fault != nil }) { return false }
            let deaf = devices.filter { $0.newest < keyring.sequence }
            guard !deaf.isEmpty else { return haveSame(devices) }
            if recorder.wasCalm(Self.hearingMax) {
                for device in deaf where await mustHaveHeard(device, of: begun, session) {
                    device.fault =
                        "node \(device.node.number) does not tell of what was changed at "
                        + "\(begun / World.millisecond) ms, after \(device.newest) of \(keyring.sequence)"
                    return false
                }
            }
            await sleep(world.milliseconds(10...200))
        }
        return false
    }

    /// Whether a device waits at a node that could have told it of a change long ago, as it tells who asks now.
    private func mustHaveHeard(_ device: WaitingDevice, of change: UInt64, _ session: String) async -> Bool {
        let (store, token, newest) = (keyring.store, device.token, device.newest)
        guard let since = device.waitsSince, max(since, change) + Self.hearingMax < world.now else { return false }
        let answer = await ServerCall.make(to: device.node, as: UserSession(session), recorder) {
            visit throws(RequestFailure) in
            try await Preferences(visit.service, store).changes(since: token, limit: 1, by: visit.deadline).changes
        }
        guard case .value(let changes) = answer else { return false }
        return changes > 0 && device.waitsSince == since && device.newest == newest
    }

    /// Whether devices have what is in the store.
    private func haveSame(_ devices: [WaitingDevice]) -> Bool {
        let rows = keyring.live.map(\.text)
        for device in devices {
            let copy = device.copy.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
            if !copy.elementsEqual(rows, by: { $0.utf8.elementsEqual($1.utf8) }) {
                device.fault = "it has \(copy), and the store has \(rows)"
            }
        }
        return !devices.contains { $0.fault != nil }
    }
}

extension Visit {
    /// Tells a device of changes as they come.
    fileprivate func wait(
        _ device: WaitingDevice, in call: Int, for store: StoreKey, limit: Int, seconds: UInt64
    ) async throws(RequestFailure) {
        // It is let in as with any request; the node knows its session then.
        let requester = try await enter(rate: .keyValues) { context throws(RequestFailure) in
            Requester(context.admitted, requestID: "", address: nil)
        }
        let watch = PreferenceWatch(
            Preferences(service, store), credentials: credentials, target: Place.target, requester: requester,
            limit: limit)
        let ticket = try watch.enter()
        defer { ticket.leave() }
        device.wait(in: call, ticket, at: device.node.world.now)
        while device.isIn(call) {
            let (page, isClosing) = try await watch.page(since: device.token, within: seconds, ticket)
            guard device.isIn(call) else { return }
            device.take(page)
            if isClosing { return }
        }
    }
}
