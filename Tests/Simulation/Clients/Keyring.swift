import KeyValueStore
import RecordModel
import Wire

/// A store of preferences that one client alone writes to, as it must be: every answer is known before it comes.
struct Keyring: Sendable {
    /// What a key is, or that it was deleted.
    struct Row: Sendable {
        let key: String
        /// Nil where it was deleted.
        let value: PropertyValue?
        let version: ChangeTag
        let device: String?
        /// Which batch changed it last.
        let batch: Int
    }

    /// A batch as it was sent, and what came of it.
    struct Batch: Sendable {
        var writes: [KeyValueCommand.Write]
        var key: String?
        var device: String?
        var answer = Answer.unknown
    }

    /// What a batch is answered.
    enum Answer: Sendable {
        case unknown
        case applied([ChangeTag?], KeyValueUsage)
        case conflict([String])
        case refused(String)
    }

    /// A token, and what it stands for.
    struct Bookmark: Sendable {
        var token: String?
        /// Every change up to here was on a page.
        var position: UInt64 = 0
        /// Deletions up to here are of keys that the reader never saw.
        var firstEnd: UInt64
    }

    /// A page of the feed, as it must be.
    struct Page {
        var rows: [Row]
        var isMoreComing: Bool
        var next: Bookmark
    }

    static let keysMax = 1_024
    static let bytesMax = 1_048_576
    private static let tombstonesMax = 4_096
    private static let pageMax = 1_024

    /// Whose it is. There is such an account once a device waits for changes.
    let account: String
    let store: StoreKey
    /// Names a session of the account; nil where there is none.
    var session: String?
    /// Whether it comes near to as many keys as there may be.
    let isWide: Bool
    private(set) var sequence: UInt64 = 0
    /// The last deletion that was forgotten.
    private(set) var floor: UInt64 = 0
    private var rows: [[UInt8]: Row] = [:]
    private(set) var batches = 0
    /// When each batch was made, as the first answer with it said.
    private var stamps: [Int: Int64] = [:]
    /// When each batch was begun and known to be done, in simulated milliseconds.
    private var spans: [Int: ClosedRange<Int64>] = [:]
    /// Batches under idempotency keys.
    var past: [Batch] = []
    var bookmarks: [Bookmark] = []

    init(of account: String, in environment: Environment, isWide: Bool) {
        self.account = account
        store = StoreKey(
            container: Place.container, environment: environment, user: account.isEmpty ? "" : Place.user(account))
        self.isWide = isWide
    }

    /// In the order of the keys' bytes.
    var live: [Row] {
        rows.values.filter { $0.value != nil }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    func row(_ key: String) -> Row? { rows[Array(key.utf8)] }

    var usage: KeyValueUsage {
        rows.values.reduce(into: KeyValueUsage()) { usage, row in
            guard let value = row.value else { return }
            usage.keys += 1
            usage.bytes += value.counted
        }
    }

    /// Performs a batch.
    mutating func perform(_ batch: Batch, during span: ClosedRange<Int64>) -> Answer {
        if let refusal = Self.refusal(of: batch.writes) { return .refused(refusal) }
        let clashes = batch.writes.filter { write in
            guard let expected = write.expectedVersion else { return false }
            let row = row(write.key)
            return expected == KeyValueTables.absent ? row?.value != nil : row?.version != expected
        }
        if !clashes.isEmpty { return .conflict(clashes.map(\.key)) }
        let before = self
        var versions: [ChangeTag?] = []
        for write in batch.writes {
            guard write.value != nil || row(write.key)?.value != nil else {
                versions.append(nil)
                continue
            }
            sequence += 1
            let version = ChangeTag(incarnation: 1, sequence: sequence)
            versions.append(version)
            rows[Array(write.key.utf8)] = Row(
                key: write.key, value: write.value, version: version, device: batch.device, batch: batches)
        }
        let (old, new) = (before.usage, usage)
        if new.keys > Self.keysMax, new.keys > old.keys {
            self = before
            return .refused("keys: \(new.keys) of \(Self.keysMax)")
        }
        if new.bytes > Self.bytesMax, new.bytes > old.bytes {
            self = before
            return .refused("storeBytes: \(new.bytes) of \(Self.bytesMax)")
        }
        spans[batches] = span
        batches += 1
        forgetTombstones()
        return .applied(versions, new)
    }

    /// What is wrong with a batch, whatever the store has.
    private static func refusal(of writes: [KeyValueCommand.Write]) -> String? {
        var seen: Set<[UInt8]> = []
        for write in writes {
            let bytes = Array(write.key.utf8)
            if bytes.isEmpty || bytes.count > 64 { return "keyBytes: \(bytes.count) of 64" }
            if !seen.insert(bytes).inserted { return "writesOfKey: 2 of 1" }
            if let depth = write.value?.depth, depth > 12 { return "valueDepth: \(depth) of 12" }
        }
        return nil
    }

    private mutating func forgetTombstones() {
        let deletions = rows.values.filter { $0.value == nil }.map(\.version.sequence).sorted(by: >)
        guard deletions.count > Self.tombstonesMax else { return }
        floor = deletions[Self.tombstonesMax / 2]
        rows = rows.filter { $1.value != nil || $1.version.sequence > floor }
    }

    /// A reader who begins now.
    var beginning: Bookmark { Bookmark(firstEnd: sequence) }

    /// Whether deletions after a bookmark are forgotten.
    func isTooOld(_ bookmark: Bookmark) -> Bool { max(bookmark.position, bookmark.firstEnd) < floor }

    func page(after bookmark: Bookmark, limit: Int) -> Page {
        let news = rows.values.filter { row in
            let sequence = row.version.sequence
            return sequence > bookmark.position && (row.value != nil || sequence > bookmark.firstEnd)
        }.sorted { $0.version.sequence < $1.version.sequence }
        let page = Array(news.prefix(min(max(limit, 1), Self.pageMax)))
        var next = bookmark
        let isMoreComing = page.count < news.count
        next.position = isMoreComing ? page.last?.version.sequence ?? 0 : sequence
        return Page(rows: page, isMoreComing: isMoreComing, next: next)
    }

    /// Notes when a row was changed, as an answer says.
    /// - Returns: what is wrong with it.
    mutating func note(_ modified: Int64, of row: Row, areClocksRight: Bool) -> String? {
        if let known = stamps[row.batch] {
            return known == modified
                ? nil : "'\(row.key)' was changed at \(modified), and with what was changed at \(known)"
        }
        stamps[row.batch] = modified
        guard areClocksRight, let span = spans[row.batch] else { return nil }
        // Wall clocks drift, too.
        let about = span.lowerBound - 30_000...span.upperBound + 30_000
        return about.contains(modified)
            ? nil : "'\(row.key)' was changed between \(span.lowerBound) and \(span.upperBound), not at \(modified)"
    }
}

/// What an answer says of a key.
struct KeyringElement {
    let key: String
    let hasValue: Bool
    let version: ChangeTag
    /// All of it, without when it was changed.
    let text: String

    /// Nil where it cannot be read as one.
    init?(_ element: JSONValue) {
        guard let key = element["key"]?.string, let version = element["version"]?.string.flatMap({ ChangeTag($0) })
        else { return nil }
        var value: PropertyValue?
        if let json = element["value"] {
            value = try? PropertyValue(json: json, path: "")
            if value == nil { return nil }
        } else if case .bool(true)? = element["deleted"] {
        } else {
            return nil
        }
        (self.key, self.version, hasValue) = (key, version, value != nil)
        text =
            "\(key.bytesText) = \(value.map { $0.bytesText } ?? "nothing") at \(version)"
            + " by \(element["device"]?.string ?? "-")"
    }
}

extension Keyring.Row {
    /// What an answer says of it, without when it was changed.
    var text: String {
        "\(key.bytesText) = \(value.map { $0.bytesText } ?? "nothing") at \(version) by \(device ?? "-")"
    }
}

extension String {
    /// Tells spellings of one letter apart.
    var bytesText: String {
        utf8.allSatisfy { (0x21...0x7E).contains($0) }
            ? self : utf8.map { String($0, radix: 16) }.joined(separator: ".")
    }
}

extension PropertyValue {
    /// Tells everything apart that is not the same.
    var bytesText: String {
        encoded().prefix(200).map { String($0, radix: 16) }.joined() + (encoded().count > 200 ? "…" : "")
    }

    /// What it counts for in a store.
    var counted: Int {
        func member(_ value: PropertyValue) -> Int {
            switch value {
            case .array, .dictionary: 8 + value.counted
            default: max(8, value.counted)
            }
        }
        switch self {
        case .string(let text): return text.utf8.count
        case .data(let bytes): return bytes.count
        case .int64, .double, .date: return 8
        case .bool: return 1
        case .array(let members): return members.map(member).reduce(0, +)
        case .dictionary(let entries): return entries.map { max(8, $0.key.utf8.count) + member($0.value) }.reduce(0, +)
        }
    }
}
