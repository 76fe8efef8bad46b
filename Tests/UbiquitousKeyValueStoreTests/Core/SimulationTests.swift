import RaftCore
import RecordModel
import Testing

@testable import UbiquitousKeyValueStore

@Suite("Devices of several users, over a network that loses, doubles and delays")
struct SimulationTests {
    @Test(
        "stores converge, every change is told once, nobody sees another's, limits hold",
        arguments: 1...20 as ClosedRange<UInt64>)
    func converge(seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<500 { world.step() }
        world.settle()
        for device in world.devices { world.checkConverged(device) }
    }

    @Test(
        "a device's own older write never takes the place of its newer edit", arguments: 1...30 as ClosedRange<UInt64>)
    func ownWrites(seed: UInt64) {
        var world = World(seed: seed)
        world.devices.removeSubrange(1...)
        world.forgetPercent = 40
        let key = PreferenceKey("a")
        var last: PropertyValue?
        for _ in 0..<200 {
            if world.dice.percent(20) {
                world.edits += 1
                last = .string("ann-\(world.edits)")
                world.devices[0].edit(key, last)
            } else if world.dice.percent(5) {
                world.devices[0].restart()
            } else {
                world.now += 300
                world.wake(0)
                world.exchange(0)
            }
            #expect(world.devices[0].sync.copy.value(key) == last, "seed \(seed)")
        }
        world.settle()
        #expect(world.server.stores["ann"]?.visible[key] == last, "seed \(seed)")
        #expect(world.devices[0].notifications.isEmpty)
    }

    /// Three devices of one user and one of another, and their server.
    private struct World {
        var dice: SplitMix64
        var server = TwinServer()
        var devices: [SimulatedDevice] = []
        var late: [(device: Int, request: SimulatedDevice.Request)] = []
        var backups: [String: TwinServer.Store] = [:]
        var edits = 0
        var now: Int64 = 0
        /// How often the server does not want to hear of a batch any more.
        var forgetPercent = 8
        let seed: UInt64
        static let keys = ["a", "b", "c", "d", "e", "f", "g", "h"].map { PreferenceKey($0) }

        init(seed: UInt64) {
            self.seed = seed
            dice = SplitMix64(seed: seed)
            server.limits.keysMax = 5
            server.limits.storeBytesMax = 120
            server.limits.valueBytesMax = 60
            server.pageMax = Int.random(in: 1...4, using: &dice)
            let users = ["ann", "ann", "ann", "bob"]
            for (index, user) in users.enumerated() {
                devices.append(SimulatedDevice("device\(index)", limits: server.limits, account: user))
                wake(index)
            }
        }

        mutating func wake(_ index: Int) {
            devices[index].now = now
            devices[index].handle(.woken)
        }

        mutating func step() {
            now += Int64.random(in: 0...400, using: &dice)
            let index = Int.random(in: 0..<devices.count, using: &dice)
            devices[index].now = now
            switch Int.random(in: 0..<100, using: &dice) {
            case 0..<25: edit(index)
            case 25..<65: exchange(index)
            case 65..<75: wake(index)
            case 75..<82: devices[index].handle(.changesSuspected)
            case 82..<86: devices[index].isOnline.toggle()
            case 86..<90: devices[index].restart()
            case 90..<92: devices[index].handle(.syncRequested)
            case 92..<94: switchAccount(index)
            case 94..<97: deliverLate()
            case 97: server.forgetTombstones(of: devices[index].sync.account ?? "ann")
            case 98: backups["ann"] = server.stores["ann"]
            default:
                if let backup = backups["ann"], dice.percent(30) { server.restore("ann", to: backup) }
            }
            checkLimitsAndOwners()
        }

        mutating func edit(_ index: Int) {
            edits += 1
            let owner = devices[index].sync.account ?? SimulatedDevice.nobody
            let key = Self.keys.randomElement(using: &dice) ?? Self.keys[0]
            let text = "\(owner)-\(edits)-" + String(repeating: "x", count: Int.random(in: 0...50, using: &dice))
            let value: PropertyValue? = dice.percent(25) ? nil : .string(text)
            devices[index].edit(key, value, isExplicit: dice.percent(15))
        }

        mutating func switchAccount(_ index: Int) {
            let account = [nil, "ann", "bob", "ann"].randomElement(using: &dice) ?? nil
            if account != devices[index].sync.account { devices[index].changeAccount(to: account) }
        }

        /// The network takes up one of a device's requests, and does with it what networks do.
        mutating func exchange(_ index: Int) {
            guard !devices[index].requests.isEmpty else { return }
            let place = Int.random(in: 0..<devices[index].requests.count, using: &dice)
            let request = devices[index].requests.remove(at: place)
            if !devices[index].isOnline || dice.percent(10) {
                fail(index, request)
            } else if dice.percent(10) {
                // It may still arrive, after the device gave it up.
                late.append((index, request))
                fail(index, request)
            } else if dice.percent(5) {
                let pause: Int64 = 2000
                switch request.kind {
                case .upload(let batch):
                    devices[index].handle(.uploadAnswered(batch.id, .unknown(retryAfterMilliseconds: pause)))
                case .fetch(let ticket): devices[index].handle(.fetchFailed(ticket, retryAfterMilliseconds: pause))
                }
            } else {
                let event = answer(request, index)
                if dice.percent(10) { return fail(index, request) }
                devices[index].handle(event)
                if dice.percent(15) { devices[index].handle(event) }
            }
        }

        mutating func fail(_ index: Int, _ request: SimulatedDevice.Request) {
            switch request.kind {
            case .upload(let batch):
                devices[index].handle(.uploadAnswered(batch.id, .unknown(retryAfterMilliseconds: nil)))
            case .fetch(let ticket): devices[index].handle(.fetchFailed(ticket, retryAfterMilliseconds: nil))
            }
        }

        mutating func answer(_ request: SimulatedDevice.Request, _ index: Int) -> PreferenceEvent {
            switch request.kind {
            case .upload(let batch):
                if dice.percent(forgetPercent) { server.forget(batch, of: request.account) }
                return .uploadAnswered(
                    batch.id, server.set(batch, user: request.account, device: devices[index].name))
            case .fetch(let ticket):
                guard let page = server.changes(user: request.account, since: ticket.since) else {
                    return .tokenExpired(ticket)
                }
                return .pageArrived(ticket, page)
            }
        }

        /// A request arrives long after it was sent, and its answer too.
        mutating func deliverLate() {
            guard !late.isEmpty else { return }
            let (index, request) = late.remove(at: Int.random(in: 0..<late.count, using: &dice))
            let event = answer(request, index)
            devices[index].now = now
            if dice.percent(50) { devices[index].handle(event) }
        }

        func checkLimitsAndOwners() {
            for (user, store) in server.stores {
                #expect(store.visible.count <= server.limits.keysMax && store.bytes <= server.limits.storeBytesMax)
                for value in store.visible.values { expect(value, belongsTo: user) }
            }
            for device in devices {
                let visible = device.sync.copy.visible
                for (_, value) in visible { expect(value, belongsTo: device.sync.account) }
                let seen = Dictionary(uniqueKeysWithValues: visible.map { ($0.key, $0.value) })
                #expect(device.belief == seen, "seed \(seed): \(device.name)'s app was not told")
            }
        }

        private func expect(_ value: PropertyValue, belongsTo user: String?) {
            guard case .string(let text) = value else { return }
            let owner = text.split(separator: "-").first.map(String.init)
            #expect(owner == user || owner == SimulatedDevice.nobody, "seed \(seed): \(user ?? "nobody") sees \(text)")
        }

        /// Everybody is online and nothing is lost any more.
        mutating func settle() {
            late = []
            forgetPercent = 0
            for index in devices.indices {
                devices[index].isOnline = true
                devices[index].now = now
                if devices[index].sync.account == nil { devices[index].changeAccount(to: "bob") }
            }
            for _ in 0..<60 {
                now += 61_000
                for index in devices.indices {
                    devices[index].now = now
                    devices[index].handle(.changesSuspected)
                    var rounds = 0
                    while !devices[index].requests.isEmpty {
                        rounds += 1
                        #expect(rounds < 500, "seed \(seed): \(devices[index].name) never ends")
                        if rounds >= 500 { break }
                        let request = devices[index].requests.removeFirst()
                        devices[index].handle(answer(request, index))
                    }
                }
                checkLimitsAndOwners()
            }
        }

        func checkConverged(_ device: SimulatedDevice) {
            let store = device.sync.account.flatMap { server.stores[$0] }
            let visible = Dictionary(uniqueKeysWithValues: device.sync.copy.visible.map { ($0.key, $0.value) })
            #expect(visible == store?.visible ?? [:], "seed \(seed): \(device.name) differs")
            #expect(device.sync.isSettled, "seed \(seed): \(device.name) is not settled")
        }
    }
}
