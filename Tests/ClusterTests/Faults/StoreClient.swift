import HistoryChecks
import RecordModel
import TestSupport

/// A client of the user's key-value store, every call of which it writes down.
struct StoreClient {
    private var base: FaultClient
    private let store: RecordedStore
    private var versions: [String: Version] = [:]
    private var copy = FeedCopy<String>()
    private var token: String?

    init(_ base: FaultClient, store: RecordedStore) {
        self.base = base
        self.store = store
    }

    /// One request, answered or given up.
    mutating func step() async {
        switch base.roll(10) {
        case 0...4: await set()
        case 5...6: await get()
        default: await follow()
        }
    }

    private mutating func set() async {
        let first = base.roll(store.keys.count)
        let writes = (0..<1 + base.roll(3)).map { offset -> KeyValueModel.Write in
            let key = store.keys[(first + offset) % store.keys.count]
            let value = base.roll(5) == 0 ? nil : base.value()
            let expected = base.roll(2) == 0 ? versions[key] : nil
            return KeyValueModel.Write(key, value, expecting: expected.map { .version($0) } ?? .anything)
        }
        let body = #"{"writes": [\#(writes.map(\.member).joined(separator: ", "))]}"#
        let id = store.begin(.write(writes), client: base.number)
        let final = await base.change("set", body) { $0.status == 200 || $0.json["conflicts"] != nil }
        guard let (answer, _) = final else {
            if base.wasNeverSent { store.withdraw(id) }
            return
        }
        if let conflicts = answer.json["conflicts"]?.array {
            for conflict in conflicts {
                guard let key = conflict["key"]?.string else { continue }
                versions[key] = Version(conflict["version"]?.string)
            }
            return store.end(id, .conflict(conflicts.compactMap { $0["key"]?.string }))
        }
        let values = answer.json["values"]?.array ?? []
        guard values.count == writes.count else { return store.complain("\(writes) was answered \(answer)") }
        store.end(id, .applied(values.map { Version($0["version"]?.string) }))
        for (write, value) in zip(writes, values) { versions[write.key] = Version(value["version"]?.string) }
    }

    private mutating func get() async {
        let first = base.roll(store.keys.count)
        let keys = (0..<1 + base.roll(3)).map { store.keys[(first + $0) % store.keys.count] }
        let id = store.begin(.read(keys), client: base.number)
        let body = #"{"keys": [\#(keys.map { "\"\($0)\"" }.joined(separator: ", "))]}"#
        guard let answer = await base.ask("get", body, node: base.roll(base.nodes)), answer.status == 200,
            let values = answer.json["values"]?.array
        else { return store.withdraw(id) }
        var found: [String: Versioned<String>] = [:]
        for value in values {
            guard let entry = FeedCopy<String>.Entry(value) else {
                store.complain("get was answered \(answer)")
                continue
            }
            found[entry.name] = entry.content.map { Versioned($0, entry.version) }
            versions[entry.name] = entry.version
        }
        store.end(id, .found(found))
    }

    private mutating func follow() async {
        for _ in 0..<20 {
            let since = token.map { #""syncToken": "\#($0)", "# } ?? ""
            let id = store.begin(.view, client: base.number)
            guard
                let answer = await base.ask(
                    "changes", #"{\#(since)"resultsLimit": \#(1 + base.roll(6))}"#, node: base.roll(base.nodes)),
                answer.status == 200, let changes = answer.json["changes"]?.array,
                case .bool(let hasMore)? = answer.json["moreComing"]
            else { return store.withdraw(id) }
            let entries = changes.compactMap { FeedCopy<String>.Entry($0) }
            if entries.count != changes.count { store.complain("the feed has \(changes)") }
            do {
                try copy.take(entries)
            } catch {
                store.complain("client \(base.number): \(error)")
            }
            token = answer.json["syncToken"]?.string
            guard hasMore else { return store.end(id, .found(copy.records)) }
            store.withdraw(id)
        }
    }
}

extension KeyValueModel.Write {
    /// The write in a request's body.
    fileprivate var member: String {
        var members = [#""key": "\#(key)", "value": \#(value.map { "\"\($0)\"" } ?? "null")"#]
        if case .version(let version) = expectation {
            let tag = ChangeTag(incarnation: version.incarnation, sequence: version.sequence)
            members.append(#""version": "\#(tag)""#)
        }
        return "{\(members.joined(separator: ", "))}"
    }
}

extension FeedCopy<String>.Entry {
    /// A key of an answer, or a change of one.
    fileprivate init?(_ json: JSONValue) {
        guard let name = json["key"]?.string, let version = Version(json["version"]?.string) else { return nil }
        if json["deleted"] == .bool(true) {
            self.init(name, version, nil)
        } else if let text = json["value"]?["value"]?.string {
            self.init(name, version, text)
        } else {
            return nil
        }
    }
}
