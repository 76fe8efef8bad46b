import RecordModel
import Testing

@testable import Directory

@Suite("The vault of encrypted fields")
struct FieldVaultTests {
    private static let clusterKey = [UInt8](1...32)
    private static let place = FieldPlace(
        zone: ZoneKey(
            database: DatabaseKey(container: "app", environment: .development, scope: .private, owner: "_u"), name: "Z"),
        recordName: "r", field: "secret")

    /// A vault that knows `count` keys of the container, and what the directory says of them.
    private func vault(keys count: Int = 1) throws -> (vault: FieldVault, snapshot: DirectorySnapshot) {
        let vault = FieldVault(clusterKey: Self.clusterKey)
        var snapshot = DirectorySnapshot()
        for number in 0..<count {
            let key = try vault.newContainerKey(number: UInt64(number + 1), container: "app")
            snapshot.take(.containerKey(container: "app", key))
        }
        vault.update(snapshot)
        return (vault, snapshot)
    }

    private func sealed(_ value: FieldValue) throws -> [UInt8] {
        guard case .sealed(let bytes) = value else {
            Issue.record("\(value) is not sealed")
            return []
        }
        return bytes
    }

    private func reason(_ body: () throws -> FieldValue) -> String {
        do {
            Issue.record("opened or sealed: \(try body())")
            return ""
        } catch let error as ServiceError {
            #expect(error.code == .internalError)
            #expect(!error.reason.contains("hidden"), "the reason shows the value")
            return error.reason
        } catch {
            Issue.record("\(error)")
            return ""
        }
    }

    @Test(
        "what is sealed opens as what it was",
        arguments: [
            FieldValue.string("hidden"), .string(""), .int64(.min), .double(-0.5), .timestamp(-1), .bytes([0, 255]),
            .location(Location(latitude: 1, longitude: 2)), .list(.string, [.string("a"), .string("b")]),
            .list(.int64, []),
        ])
    func roundTrip(value: FieldValue) throws {
        let (vault, snapshot) = try vault()
        let sealed = try vault.seal(.encrypted(value), container: "app", place: Self.place)
        #expect(try vault.open(sealed, container: "app", place: Self.place) == .encrypted(value))
        // Another node of the cluster opens it as well.
        let other = FieldVault(clusterKey: Self.clusterKey)
        other.update(snapshot)
        #expect(try other.open(sealed, container: "app", place: Self.place) == .encrypted(value))
    }

    @Test("values that are not encrypted pass through, with or without a key")
    func plain() throws {
        let vault = FieldVault(clusterKey: nil)
        #expect(try vault.seal(.string("x"), container: "app", place: Self.place) == .string("x"))
        #expect(try vault.open(.int64(1), container: "app", place: Self.place) == .int64(1))
    }

    @Test("one value sealed twice looks different, and shows nothing of itself")
    func randomness() throws {
        let (vault, _) = try vault()
        let value = FieldValue.encrypted(.string("hidden hidden hidden"))
        let first = try sealed(try vault.seal(value, container: "app", place: Self.place))
        let second = try sealed(try vault.seal(value, container: "app", place: Self.place))
        #expect(first != second)
        #expect(first.count == second.count)
        #expect(!String(decoding: first, as: UTF8.self).contains("hidden"))
    }

    @Test("a sealed value opens in its own place only")
    func wrongPlace() throws {
        let (vault, _) = try vault()
        let sealed = try vault.seal(.encrypted(.string("hidden")), container: "app", place: Self.place)
        var places: [FieldPlace] = []
        for change in [
            { $0.field = "other" }, { $0.recordName = "s" }, { $0.zone.name = "Y" },
            { $0.zone.database.owner = "_v" }, { $0.zone.database.scope = .shared },
            { $0.zone.database.environment = .production }, { $0.zone.database.container = "b" },
            // The same characters, divided otherwise.
            {
                $0.recordName = "rsecret"
                $0.field = ""
            },
        ] as [(inout FieldPlace) -> Void] {
            var place = Self.place
            change(&place)
            places.append(place)
        }
        for place in places {
            let reason = reason { try vault.open(sealed, container: "app", place: place) }
            #expect(reason.contains("copied from another place"))
            #expect(reason.contains("'\(place.field)' of record '\(place.recordName)'"))
        }
    }

    @Test("damage anywhere in a sealed value is noticed")
    func tampering() throws {
        let (vault, _) = try vault()
        let bytes = try sealed(try vault.seal(.encrypted(.string("hidden")), container: "app", place: Self.place))
        for position in bytes.indices {
            var damaged = bytes
            damaged[position] ^= 0x40
            _ = reason { try vault.open(.sealed(damaged), container: "app", place: Self.place) }
        }
        for count in [0, 1, 8, 9, 36, bytes.count - 1] {
            _ = reason { try vault.open(.sealed(Array(bytes.prefix(count))), container: "app", place: Self.place) }
        }
        let newer = reason { try vault.open(.sealed([2] + bytes.dropFirst()), container: "app", place: Self.place) }
        #expect(newer.contains("form 2"))
    }

    @Test("after a rotation the new key seals, and what the old one sealed opens")
    func rotation() throws {
        var (vault, snapshot) = try vault()
        let old = try vault.seal(.encrypted(.string("old")), container: "app", place: Self.place)
        #expect(vault.currentKey(of: "app") == 1)
        snapshot.take(.containerKey(container: "app", try vault.newContainerKey(number: 2, container: "app")))
        vault.update(snapshot)
        #expect(vault.currentKey(of: "app") == 2)
        let new = try vault.seal(.encrypted(.string("new")), container: "app", place: Self.place)
        #expect(try sealed(old)[8] == 1 && sealed(new)[8] == 2)
        #expect(try vault.open(old, container: "app", place: Self.place) == .encrypted(.string("old")))
        #expect(try vault.open(new, container: "app", place: Self.place) == .encrypted(.string("new")))
        // A node that has not heard of the rotation says which key it lacks.
        let behind = FieldVault(clusterKey: Self.clusterKey)
        var before = DirectorySnapshot()
        before.take(.containerKey(container: "app", snapshot.keys(of: "app")[0]))
        behind.update(before)
        #expect(try behind.open(old, container: "app", place: Self.place) == .encrypted(.string("old")))
        let later = ServiceError(
            .tryAgainLater, "data key 2 of container 'app' has not reached this node yet", retryAfterSeconds: 1)
        #expect(throws: later) { try behind.open(new, container: "app", place: Self.place) }
        let fields = Fields([.init(name: "old", value: old), .init(name: "new", value: new)])
        #expect(behind.isBehind(fields, of: "app") && !vault.isBehind(fields, of: "app"))
        #expect(!behind.isBehind(Fields([.init(name: "old", value: old)]), of: "app"))
        behind.update(snapshot)
        #expect(!behind.isBehind(fields, of: "app"), "it has heard of the rotation")
    }

    @Test("without the cluster's key the error says how to give the node one")
    func noClusterKey() throws {
        let (vault, snapshot) = try vault()
        let sealed = try vault.seal(.encrypted(.string("hidden")), container: "app", place: Self.place)
        let bare = FieldVault(clusterKey: nil)
        bare.update(snapshot)
        let sealing = reason { try bare.seal(.encrypted(.string("hidden")), container: "app", place: Self.place) }
        #expect(sealing.contains("zonekeeper certs create"))
        let opening = reason { try bare.open(sealed, container: "app", place: Self.place) }
        #expect(opening == sealing)
        #expect(throws: ServiceError.self) { try bare.newContainerKey(number: 1, container: "app") }
    }

    @Test("with another cluster's key, or another container's data key, nothing opens")
    func wrongKeys() throws {
        let (vault, snapshot) = try vault()
        let sealed = try vault.seal(.encrypted(.string("hidden")), container: "app", place: Self.place)
        let other = FieldVault(clusterKey: [UInt8](repeating: 7, count: 32))
        other.update(snapshot)
        #expect(
            reason { try other.open(sealed, container: "app", place: Self.place) }.contains(
                "does not open with this node"))
        // Nor does a node with another key begin a second set of data keys, in whichever container.
        #expect(throws: ServiceError.self) { try other.newContainerKey(number: 1, container: "b") }
        #expect(throws: Never.self) { try vault.newContainerKey(number: 1, container: "b") }
        // A wrapped key is bound to its container and number.
        var moved = DirectorySnapshot()
        moved.take(.containerKey(container: "b", snapshot.keys(of: "app")[0]))
        moved.take(
            .containerKey(container: "app", ContainerKey(number: 2, wrapped: snapshot.keys(of: "app")[0].wrapped)))
        let third = FieldVault(clusterKey: Self.clusterKey)
        third.update(moved)
        _ = reason { try third.seal(.encrypted(.string("hidden")), container: "b", place: Self.place) }
        _ = reason { try third.seal(.encrypted(.string("hidden")), container: "app", place: Self.place) }
        // Damaged bytes of a wrapped key, and none.
        for wrapped in [[], [1], Array(snapshot.keys(of: "app")[0].wrapped.dropLast())] as [[UInt8]] {
            var damaged = DirectorySnapshot()
            damaged.take(.containerKey(container: "app", ContainerKey(number: 1, wrapped: wrapped)))
            let fourth = FieldVault(clusterKey: Self.clusterKey)
            fourth.update(damaged)
            _ = reason { try fourth.open(sealed, container: "app", place: Self.place) }
        }
    }

    @Test("a container without a data key says so")
    func noContainerKey() throws {
        let vault = FieldVault(clusterKey: Self.clusterKey)
        #expect(vault.currentKey(of: "app") == nil)
        #expect(
            reason { try vault.seal(.encrypted(.string("hidden")), container: "app", place: Self.place) }
                .contains("no data key"))
    }
}
