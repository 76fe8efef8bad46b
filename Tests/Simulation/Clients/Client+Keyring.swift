import Admission
import Cluster
import KeyValueStore
import RecordModel
import Service
import Wire

// What a client does with preferences that nobody else writes: each answer is held against what it must be.
extension Client {
    static let ringNames =
        ["a", "A", "b", "\u{E9}", "e\u{301}", "z\u{0}", "zz"] + [String(repeating: "k", count: 64)]
    /// Of a store that comes near to as many keys as there may be.
    private static let wideNames = (0..<1_100).map { "w\($0)" }
    private static let bookmarksMax = 10
    private static let pastKeyringMax = 8

    func newKeyring() -> Keyring {
        keyringSerial += 1
        let isWide = nodes[0].options.hasWideStore && number == 2 && keyringSerial < 3
        return Keyring(
            of: "keyring\(number)x\(keyringSerial)", in: world.chance(65) ? .development : .production, isWide: isWide)
    }

    func useKeyring() async {
        if keyring.store.user.isEmpty { keyring = newKeyring() }
        if keyring.isWide { await writeKeyring() }
        for _ in 0..<world.random(2...6) where !isEnding {
            switch world.random(0...20) {
            case 0..<8: await writeKeyring()
            case 8..<11: await repeatKeyring()
            case 11..<16: await followKeyring(pagesMax: world.random(1...4))
            case 16: await listKeyring(pagesMax: 3)
            case 17: await getFromKeyring()
            case 18: await countKeyring()
            case 19: await awaitKeyring(changes: world.random(2...4))
            default: await misuseKeyring()
            }
        }
    }

    /// Reads all of it in every way there is.
    func readBackKeyring() async {
        if keyring.batches == 0 { return }
        await listKeyring(pagesMax: 40)
        await countKeyring()
        let bookmarks = keyring.bookmarks
        for bookmark in bookmarks + [keyring.beginning] { await follow(bookmark, limit: 2_000, pagesMax: 9) }
        let store = keyring.store
        // A key that was forgotten meanwhile ends the store.
        for batch in keyring.past where keyring.store == store { await repeatBatch(batch) }
        if number < 3 { await awaitKeyring(changes: 8) }
    }

    /// What an answer is not as it must be ends the store, too: one fault is told once.
    func misled(_ text: String) {
        recorder.violated("client \(number): preferences of \(keyring.store.user): \(text)")
        keyring = newKeyring()
    }

    private func judge(_ what: String, _ answer: String, _ expected: String) {
        if answer.utf8.elementsEqual(expected.utf8) { return }
        misled("\(what) is answered \(answer), and must be \(expected)")
    }

    private var millisecondsNow: Int64 { world.wallMilliseconds + recorder.commonOffset }

    // MARK: Batches

    private func writeKeyring() async {
        let writes = keyring.isWide && world.chance(70) ? wideWrites() : narrowWrites()
        let device = world.chance(60) ? "d\(world.random(0...2))" : nil
        // A batch whose outcome nobody knows ends the keyring, and a wide one is to be filled.
        let key = keyring.isWide || world.chance(75) ? newKey() : nil
        await send(Keyring.Batch(writes: writes, key: key, device: device))
    }

    private func narrowWrites() -> [KeyValueCommand.Write] {
        var writes = Self.ringNames.shuffled(using: &world.generator).prefix(world.random(1...5)).map { name in
            KeyValueCommand.Write(
                key: name, value: world.chance(65) ? keyringValue() : nil, expectedVersion: expectation(of: name))
        }
        // What no store takes.
        switch world.random(0...39) {
        case 0: writes.append(writes[0])
        case 1: writes.append(.init(key: "", value: .bool(true)))
        case 2: writes.append(.init(key: String(repeating: "k", count: 65), value: .bool(true)))
        case 3: writes.append(.init(key: "deep", value: (0..<13).reduce(.bool(true)) { value, _ in .array([value]) }))
        default: break
        }
        return writes
    }

    /// So many keys that the store fills up, is set again and empties.
    private func wideWrites() -> [KeyValueCommand.Write] {
        // At first mostly keys that are not there yet.
        let begin = world.chance(60) ? keyring.usage.keys : world.random(0...(Self.wideNames.count - 1))
        let isDeletion = keyring.usage.keys > 900 && world.chance(25)
        let count = isDeletion ? world.random(1...60) : world.random(100...240)
        let isMixed = world.chance(30)
        return (begin..<begin + count).map { place in
            let isGone = isDeletion || isMixed && world.chance(10)
            return .init(
                key: Self.wideNames[place % Self.wideNames.count], value: isGone ? nil : .bool(world.chance(50)))
        }
    }

    private func expectation(of name: String) -> ChangeTag? {
        switch world.random(0...9) {
        case 0..<5: nil
        case 5..<8: keyring.row(name)?.version ?? KeyValueTables.absent
        case 8: KeyValueTables.absent
        default: ChangeTag(incarnation: 1, sequence: UInt64(world.random(1...Int(keyring.sequence + 2))))
        }
    }

    func keyringValue() -> PropertyValue {
        switch world.random(0...9) {
        case 0: .string("")
        case 1: .int64(world.chance(50) ? .min : Int64(world.random(0...1_000)))
        case 2: .double(world.chance(20) ? -.infinity : Double(world.random(0...1_000)) / 8)
        case 3: .date(-Int64(world.random(0...1_000)))
        case 4: .data((0..<world.random(0...9)).map { UInt8($0) })
        case 5: .array([.bool(true), .string(newValue()), .array([])])
        case 6:
            .dictionary([
                .init(key: "", value: .int64(1)), .init(key: "long enough", value: .dictionary([])),
            ])
        case 7: (0..<12).reduce(.bool(false)) { value, _ in .array([value]) }
        default: .string(newValue())
        }
    }

    /// Sends a batch, until what became of it is known.
    func send(_ batch: Keyring.Batch) async {
        let begin = millisecondsNow
        let answer = await ask(batch)
        guard let text = told(answer, batch) else { return }
        var batch = batch
        batch.answer = keyring.perform(batch, during: begin...millisecondsNow)
        judge("the batch \(shown(batch))", text, expected(batch))
        if case .refused(let reason) = batch.answer {
            if reason.hasPrefix("keys") { world.met(.filledKeys) }
            // What breaks a rule of its own is not remembered.
            if !reason.hasPrefix("keys"), !reason.hasPrefix("storeBytes") { return }
        }
        guard batch.key != nil else { return }
        keyring.past.append(batch)
        if keyring.past.count > Self.pastKeyringMax {
            keyring.past.remove(at: world.random(0...(Self.pastKeyringMax - 1)))
        }
    }

    private func ask(_ batch: Keyring.Batch) async -> Asked<Preferences.Written> {
        let store = keyring.store
        return await ask(repeats: batch.key != nil) { visit throws(RequestFailure) in
            try await visit.enter(rate: .keyValues) { _ throws(RequestFailure) in
                try await Preferences(visit.service, store).set(
                    batch.writes, idempotencyKey: batch.key, device: batch.device, by: visit.deadline)
            }
        }
    }

    /// What an answer says; nil where nobody knows what became of the batch.
    private func told(_ answer: Asked<Preferences.Written>, _ batch: Keyring.Batch) -> String? {
        switch answer {
        case .answered(.applied(let versions, let usage), _): return Self.text(versions, usage)
        case .answered(.conflict(let conflicts), _):
            return Self.text(conflicts.map { ($0.key, $0.value, $0.version) })
        case .failed(let failure):
            if case .limit(let name, let actual, let max, _)? = failure.details {
                return "refused: \(name): \(actual) of \(max)"
            }
            if failure.error.detail == .idempotencyKey {
                // Most clocks may have been wrong meanwhile.
                if recorder.mayForgetKeys() || !recorder.wereClocksRight(90 * World.second) {
                    keyring = newKeyring()
                    return nil
                }
                let isReused = failure.error.reason == KeyValueRefusal(.idempotencyKeyReused).description
                return isReused ? "refused: another batch" : "refused: \(failure.error.reason)"
            }
            return "failed: \(failure.error)"
        case .nothing(mayHaveBeenDone: false): return nil
        case .nothing(mayHaveBeenDone: true):
            keyring = newKeyring()
            return nil
        }
    }

    private static func text(_ versions: [ChangeTag?], _ usage: KeyValueUsage) -> String {
        "applied [\(versions.map { $0?.description ?? "-" }.joined(separator: " "))], "
            + "\(usage.keys) keys of \(usage.bytes)"
    }

    private static func text(_ conflicts: [(key: String, value: PropertyValue?, version: ChangeTag?)]) -> String {
        "conflicts "
            + conflicts.map { key, value, version in
                "\(key.bytesText): \(value?.bytesText ?? "nothing") at \(version?.description ?? "-")"
            }.joined(separator: ", ")
    }

    /// What the batch must be answered now, be it for the first time or once more.
    private func expected(_ batch: Keyring.Batch) -> String {
        switch batch.answer {
        case .unknown: "nothing"
        case .applied(let versions, let usage): Self.text(versions, usage)
        case .conflict(let keys):
            Self.text(keys.map { ($0, keyring.row($0)?.value, keyring.row($0)?.version) })
        case .refused(let reason): "refused: \(reason)"
        }
    }

    private func shown(_ batch: Keyring.Batch) -> String {
        batch.writes.prefix(6).map { write in
            let expected = write.expectedVersion.map { " if \($0)" } ?? ""
            return "\(write.key.bytesText)=\(write.value?.bytesText ?? "-")\(expected)"
        }.joined(separator: " ") + (batch.writes.count > 6 ? " and \(batch.writes.count - 6) more" : "")
    }

    // MARK: Repeats

    private func repeatKeyring() async {
        guard let batch = keyring.past.randomElement(using: &world.generator) else { return await writeKeyring() }
        moveOn()
        if world.chance(60) { return await repeatBatch(batch) }
        var other = batch
        other.answer = .refused("another batch")
        switch world.random(0...3) {
        case 0: other.writes.append(.init(key: "more", value: nil))
        case 1: other.writes[0].value = .string(newValue())
        case 2: other.writes[0].expectedVersion = ChangeTag(incarnation: 1, sequence: keyring.sequence + 9)
        default:
            guard other.writes.count > 1 else { return }
            other.writes.swapAt(0, 1)
        }
        await repeatBatch(other)
    }

    /// A copy of a batch comes, with another one's device perhaps.
    private func repeatBatch(_ batch: Keyring.Batch) async {
        var copy = batch
        if world.chance(30) { copy.device = "other" }
        let store = keyring.store
        guard let text = told(await ask(copy), copy), keyring.store == store else { return }
        world.met(.repeatedBatch)
        judge("the copy of \(shown(batch))", text, expected(batch))
    }

    // MARK: Reads

    private func read<Found: Sendable>(
        _ look: @escaping @Sendable (Preferences, Deadline) async throws(RequestFailure) -> Found
    ) async -> Asked<Found> {
        let store = keyring.store
        return await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.enter(rate: .keyValues) { _ throws(RequestFailure) in
                try await look(Preferences(visit.service, store), visit.deadline)
            }
        }
    }

    private func followKeyring(pagesMax: Int) async {
        let known = keyring.bookmarks.randomElement(using: &world.generator)
        let begin = known.flatMap { world.chance(75) ? $0 : nil } ?? keyring.beginning
        await follow(begin, limit: nil, pagesMax: pagesMax)
    }

    /// Follows the feed page by page; between two pages the store changes now and then.
    private func follow(_ begin: Keyring.Bookmark, limit: Int?, pagesMax: Int) async {
        var bookmark = begin
        let store = keyring.store
        for page in 0..<pagesMax {
            if limit == nil, page > 0, world.chance(40) { await writeKeyring() }
            // Who begins reads what is there as the first page is made.
            if bookmark.token == nil { bookmark = keyring.beginning }
            guard keyring.store == store else { return }
            let size = limit ?? (world.chance(keyring.isWide ? 50 : 10) ? 2_000 : world.random(1...4))
            let token = bookmark.token
            let answer = await read { preferences, deadline throws(RequestFailure) in
                try await preferences.changes(since: token, limit: size, by: deadline)
            }
            guard let next = judge(answer, after: bookmark, limit: size) else { return }
            if keyring.bookmarks.count < Self.bookmarksMax {
                keyring.bookmarks.append(next.next)
            } else {
                keyring.bookmarks[world.random(0...(Self.bookmarksMax - 1))] = next.next
            }
            if next.next.firstEnd > next.next.position { world.met(.firstReadInPages) }
            if !next.isMoreComing { return }
            bookmark = next.next
        }
    }

    private func judge(
        _ answer: Asked<ShardAnswer>, after bookmark: Keyring.Bookmark, limit: Int
    ) -> Keyring.Page? {
        let what = "the page of \(limit) after \(bookmark.position) of \(bookmark.firstEnd)"
        switch answer {
        case .nothing: break
        case .failed(let failure):
            if failure.details == .expiredToken(.tooOld), keyring.isTooOld(bookmark) {
                world.met(.forgottenDeletions)
            } else if failure.details != .expiredToken(.tooOld) || !nodes[0].options.isUpgraded {
                misled("\(what) is refused: \(failure.error)")
            }
            keyring.bookmarks.removeAll { $0.token == bookmark.token }
        case .answered(let found, _):
            var page = keyring.page(after: bookmark, limit: limit)
            if endsEarly(found.changes, of: page.rows.count) {
                page = keyring.page(after: bookmark, limit: found.changes)
            }
            guard !keyring.isTooOld(bookmark), let token = found.cursor,
                let rows = judge(found.bytes, "changes", are: page.rows, what)
            else {
                misled("\(what) is no page")
                return nil
            }
            page.next.token = String(decoding: token, as: UTF8.self)
            if found.hasMore != page.isMoreComing || rows["moreComing"]?.bool != page.isMoreComing
                || rows["syncToken"]?.string != page.next.token || found.changes != page.rows.count
            {
                misled("\(what) has \(found.changes) changes, and says of more: \(found.hasMore)")
                return nil
            }
            return page
        }
        return nil
    }

    /// Holds the members of a list against what they must be.
    /// - Returns: the answer; nil where it is wrong.
    private func judge(_ bytes: [UInt8], _ member: String, are rows: [Keyring.Row], _ what: String) -> JSONValue? {
        guard let answer = try? JSONParser.parse(bytes), let elements = answer[member]?.array else { return nil }
        var texts: [String] = []
        for element in elements {
            guard let found = KeyringElement(element), let modified = element["modified"]?.integer,
                found.hasValue || member != "values"
            else { return nil }
            texts.append(found.text)
            let key = found.key
            guard let row = keyring.row(key) else { continue }
            if let fault = keyring.note(modified, of: row, areClocksRight: areClocksAlwaysRight) {
                misled("\(what): \(fault)")
                return nil
            }
        }
        let store = keyring.store
        judge(what, texts.joined(separator: ", "), rows.map(\.text).joined(separator: ", "))
        return keyring.store == store ? answer : nil
    }

    /// Lists the store page by page.
    private func listKeyring(pagesMax: Int) async {
        var after = world.chance(50) ? nil : world.pick(Self.ringNames)
        var pages = 0
        while pages < pagesMax, let next = await listKeyring(after: after) {
            (after, pages) = (next, pages + 1)
        }
    }

    /// - Returns: where the list goes on; nil where it ends.
    private func listKeyring(after: String?) async -> String? {
        let answer = await read { preferences, deadline throws(RequestFailure) in
            try await preferences.list(after: after, by: deadline)
        }
        guard case .answered(let bytes, _) = answer else {
            refused(answer, "the list")
            return nil
        }
        var rows = keyring.live.filter { row in
            after.map { $0.utf8.lexicographicallyPrecedes(row.key.utf8) } ?? true
        }
        let count = (try? JSONParser.parse(bytes))?["values"]?.array?.count ?? 0
        let isPart = endsEarly(count, of: rows.count)
        if isPart { rows = Array(rows.prefix(count)) }
        let what = "the list after \(after ?? "nothing")"
        guard let list = judge(bytes, "values", are: rows, what) else { return nil }
        let store = keyring.store
        judgeUsage(list["usage"])
        guard keyring.store == store else { return nil }
        let next = list["after"]?.string
        if next?.bytesText == (isPart ? rows.last?.key.bytesText : nil) { return next }
        misled("\(what) says that it goes on after \(next ?? "nothing")")
        return nil
    }

    /// Whether a page may end before it is full, as its bytes are bounded.
    private func endsEarly(_ count: Int, of rows: Int) -> Bool {
        guard nodes[0].options.hasSmallPages, count > 0, count < rows else { return false }
        world.met(.endedPage)
        return true
    }

    private func getFromKeyring() async {
        let names = (0..<world.random(1...6)).map { _ in
            world.pick(keyring.isWide && world.chance(50) ? Self.wideNames : Self.ringNames)
        }
        let answer = await read { preferences, deadline throws(RequestFailure) in
            try await preferences.get(names, by: deadline)
        }
        guard case .answered(let bytes, _) = answer else { return refused(answer, "the values of \(names)") }
        let wanted = Set(names.map { Array($0.utf8) })
        let rows = keyring.live.filter { wanted.contains(Array($0.key.utf8)) }
        if judge(bytes, "values", are: rows, "the values of \(names)") == nil, !keyring.bookmarks.isEmpty {
            misled("the values of \(names) cannot be read")
        }
    }

    private func countKeyring() async {
        let answer = await read { preferences, deadline throws(RequestFailure) in
            try await preferences.usage(by: deadline)
        }
        guard case .answered(let bytes, _) = answer else { return refused(answer, "what it holds") }
        let usage = try? JSONParser.parse(bytes)
        judgeUsage(usage)
        let limits = usage?["limits"]
        judge(
            "what it may hold", "\(limits?["keys"]?.integer ?? 0), \(limits?["storeBytes"]?.integer ?? 0)",
            "\(Keyring.keysMax), \(Keyring.bytesMax)")
    }

    private func judgeUsage(_ json: JSONValue?) {
        let usage = keyring.usage
        judge(
            "what it holds", "\(json?["keys"]?.integer ?? -1) keys of \(json?["bytes"]?.integer ?? -1)",
            "\(usage.keys) keys of \(usage.bytes)")
    }

    private func refused<Value>(_ answer: Asked<Value>, _ what: String) {
        if case .failed(let failure) = answer { misled("\(what) is refused: \(failure.error)") }
    }

    // MARK: What must be refused

    /// Follows another store's token, and one that nobody gave; looks into the store of the same user elsewhere.
    private func misuseKeyring() async {
        let foreign = storeFeeds.values.compactMap(\.token).min()
        let token = world.chance(50) ? foreign ?? "AAAA" : "bm9ib2R5J3M="
        let answer = await read { preferences, deadline throws(RequestFailure) in
            try await preferences.changes(since: token, limit: 4, by: deadline)
        }
        if case .answered = answer { return misled("a token of another store is followed") }
        if case .failed(let failure) = answer, failure.error.code != .badRequest {
            return misled("a token of another store is answered \(failure.error)")
        }
        var sibling = keyring.store
        sibling.environment = sibling.environment == .production ? .development : .production
        let store = sibling
        let empty = await ask(repeats: true, triesMax: 2) { visit throws(RequestFailure) in
            try await visit.enter(rate: .keyValues) { _ throws(RequestFailure) in
                try await Preferences(visit.service, store).usage(by: visit.deadline)
            }
        }
        guard case .answered(let bytes, _) = empty else { return }
        if (try? JSONParser.parse(bytes))?["keys"]?.integer != 0 {
            misled("the other environment has keys that nobody set there")
        }
    }

    // MARK: Deletions that are forgotten

    /// Sets and deletes so many keys that the store forgets the older deletions.
    func wearOutKeyring() async {
        keyring = newKeyring()
        let store = keyring.store
        for round in 0..<10 where !isEnding && keyring.store == store {
            let names = (0..<480).map { "x\(round)-\($0)" }
            for part in [names[..<240], names[240...]] {
                await send(Keyring.Batch(writes: part.map { .init(key: $0, value: .bool(true)) }, key: newKey()))
                if keyring.store != store { return }
                await followKeyring(pagesMax: 1)
            }
            await send(Keyring.Batch(writes: names.map { .init(key: $0, value: nil) }, key: newKey()))
        }
        guard keyring.store == store else { return }
        for bookmark in keyring.bookmarks { await follow(bookmark, limit: 2_000, pagesMax: 1) }
    }
}

extension JSONValue {
    fileprivate var integer: Int64? { if case .integer(let number) = self { number } else { nil } }

    fileprivate var bool: Bool? { if case .bool(let flag) = self { flag } else { nil } }
}
