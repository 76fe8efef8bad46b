import Admission
import KeyValueStore
import RecordModel
import Service

// What a client does with preferences of its own until there is no room left.
extension Client {
    private static let fullStore = StoreKey(
        container: Place.container, environment: .development, user: "_filler")
    /// A member of an array counts for more than it takes in a command.
    private static let members = 1_000

    private static func value(_ members: Int) -> PropertyValue { .array(Array(repeating: .bool(true), count: members)) }

    private enum Filled: Sendable {
        case done(KeyValueUsage)
        /// There is no room for it.
        case refused
        case unknown
    }

    /// Fills a store up to what it may hold, and asks for more in every way there is.
    func fillStore() async {
        let size = Self.value(Self.members).sizeBytes
        var usage = KeyValueUsage()
        while usage.bytes + size <= Limits.storeBytesMax, !isEnding {
            guard case .done(let next) = await fill("f\(usage.keys)", Self.members, over: usage) else { return }
            usage = next
        }
        let room = Limits.storeBytesMax - usage.bytes
        // A new key, then a greater value of one that is there.
        guard case .refused = await fill("more", Self.members, over: usage) else { return }
        let members = Self.members + room / Self.value(1).sizeBytes + 1
        guard case .refused = await fill("f0", members, over: usage), let refused = past.last else { return }
        // Where there is room again, a copy of what was refused is still refused.
        guard case .done = await fill("f1", nil, over: usage) else { return }
        await repeatPast(refused)
    }

    /// Sets a key to a value with so many members, or deletes it.
    private func fill(_ name: String, _ members: Int?, over usage: KeyValueUsage) async -> Filled {
        let write = KeyValueCommand.Write(key: name, value: members.map(Self.value))
        let key = newKey()
        let set: PastRequest.Body<Preferences.Written> = { visit throws(RequestFailure) in
            try await visit.enter(rate: .keyValues) { _ throws(RequestFailure) in
                try await Preferences(visit.service, Self.fullStore).set(
                    [write], idempotencyKey: key, device: nil, by: visit.deadline)
            }
        }
        let answer = await ask(repeats: true, set)
        remember("a batch of a full store", answer, set) { $0.mark }
        switch answer {
        case .answered(.applied(_, let after), _):
            if after.bytes <= Limits.storeBytesMax { return .done(after) }
            recorder.violated("client \(number): a store holds \(after.bytes) bytes, of \(Limits.storeBytesMax)")
        case .failed(let failure) where failure.error.code == .quotaExceeded:
            world.met(.filledStore)
            let growth = members.map { Self.value($0).sizeBytes } ?? 0
            if usage.bytes + growth > Limits.storeBytesMax { return .refused }
            recorder.violated("client \(number): \(growth) bytes beside \(usage.bytes) are refused: \(failure.error)")
        case .answered(.conflict, _), .failed:
            recorder.violated("client \(number) is answered \(answer) as it fills a store")
        case .nothing: break
        }
        return .unknown
    }
}
