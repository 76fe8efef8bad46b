import Foundation
import RecordModel
import Synchronization
import Testing

@testable import UbiquitousKeyValueStore

@Suite("The copy on disk, whatever happens to the process, the disk and the folder")
struct PersistenceTests {
    private let scratch = Scratch()
    private let cloud = FakeCloud()
    private var ann: FakeSession { FakeSession(cloud: cloud, user: "ann") }

    private func copy(_ text: String) -> PreferenceCopy {
        var copy = PreferenceCopy(device: "one")
        copy.rows[PreferenceKey("key")] = .init(edit: .init(value: .string(text), isExplicit: false, order: 1))
        return copy
    }

    private func write(_ text: String, _ path: String) throws {
        let file = PreferenceFile(path: path)
        try file.lock()
        try file.write(copy(text))
        file.unlock()
    }

    private func text(_ content: PreferenceFile.Content) -> PropertyValue? {
        if case .copy(let copy) = content { copy.value(PreferenceKey("key")) } else { nil }
    }

    @Test(
        "a process that ends at any point of a write leaves the old copy or the new one",
        arguments: PreferenceFile.Step.allCases.filter { $0 != .locking && $0 != .folderMade })
    func death(step: PreferenceFile.Step) throws {
        let path = scratch.folder("a") + "/ann.json"
        try write("old", path)
        let dying = PreferenceFile(path: path) { $0 == step ? .death : nil }
        try dying.lock()
        #expect(throws: PreferenceFileError.self) { try dying.write(copy("new")) }
        dying.unlock()
        let next = PreferenceFile(path: path)
        #expect(text(try next.read()) == .string(step == .renamed ? "new" : "old"))
        try write("newer", path)
        #expect(text(try PreferenceFile(path: path).read()) == .string("newer"))
        let left = try FileManager.default.contentsOfDirectory(atPath: scratch.folder("a"))
        #expect(left.sorted() == ["ann.json", "ann.json.lock"], "the draft of the dead is gone")
    }

    @Test(
        "a full disk is an error that names the file, and the copy stays as it was",
        arguments: PreferenceFile.Step.allCases.filter { $0 != .locking && $0 != .folderMade })
    func fullDisk(step: PreferenceFile.Step) throws {
        let path = scratch.folder("a") + "/ann.json"
        try write("old", path)
        let full = PreferenceFile(path: path) { $0 == step ? .error(ENOSPC) : nil }
        try full.lock()
        let error = try #require(throws: PreferenceFileError.self) { try full.write(copy("new")) }
        #expect(error.description.contains(path) && error.description.contains("No space left"))
        #expect(text(try PreferenceFile(path: path).read()) == .string(step == .renamed ? "new" : "old"))
        #expect(!FileManager.default.fileExists(atPath: path + ".new"))
    }

    @Test("a damaged file is moved aside and kept, and the values come from the server again")
    func damage() async throws {
        cloud.set(["theme": .string("dark")], user: "ann")
        let folder = scratch.folder("a")
        do {
            let one = Device(folder: folder, session: ann)
            try await one.sync()
        }
        let path = PreferencePlace(folder: folder).path(of: "ann")
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[bytes.count - 20] ^= 1
        try bytes.write(to: URL(filePath: path))
        let again = Device(folder: folder, session: ann)
        #expect(again.logged.all.contains { $0.contains("checksum") && $0.contains(".damaged") })
        try await again.sync()
        #expect(again.store.string(forKey: "theme") == "dark")
        #expect(try Data(contentsOf: URL(filePath: path + ".damaged")) == bytes)
        #expect(again.store.status.storageProblem == nil)
    }

    @Test("a folder that is missing is made; files are their owner's only")
    func missingFolder() async throws {
        let folder = scratch.folder("a/b/c")
        let one = Device(folder: folder, session: nil)
        one.store.set(true, forKey: "yes")
        #expect(one.store.synchronize())
        let path = PreferencePlace(folder: folder).path(of: nil)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("where nothing can be written, the store works in memory and with the server, and says so")
    func noDisk() async throws {
        // A file stands where the folder should be; unlike permissions that stops the superuser too.
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: scratch.folder("a"), contents: Data()))
        let one = Device(folder: scratch.folder("a"), session: ann)
        one.store.set("dark", forKey: "theme")
        #expect(!one.store.synchronize())
        #expect(one.store.status.storageProblem?.contains("folder") == true)
        try await one.sync()
        #expect(one.store.string(forKey: "theme") == "dark" && cloud.visible("ann") == ["theme": .string("dark")])
        let said = one.logged.all.count
        for number in 0..<10 {
            one.store.set(Int64(number), forKey: "n")
            #expect(!one.store.synchronize())
        }
        #expect(
            one.logged.all.count == said, "said once, not with every write: \(one.logged.all.joined(separator: "\n"))")
    }

    @Test("a disk that is full for a while: nothing is lost once it is not")
    func fullForAWhile() async throws {
        let isFull = Mutex(true)
        let folder = scratch.folder("a")
        do {
            let one = Device(folder: folder, session: nil) { _ in isFull.withLock { $0 } ? .error(ENOSPC) : nil }
            one.store.set(Int64(1), forKey: "a")
            #expect(!one.store.synchronize())
            isFull.withLock { $0 = false }
            one.store.set(Int64(2), forKey: "b")
            #expect(one.store.synchronize())
        }
        let again = Device(folder: folder, session: nil)
        #expect(again.store.longLong(forKey: "a") == 1 && again.store.longLong(forKey: "b") == 2)
    }

    @Test("while another process does not let go of the file nothing is written, and nobody's edits are lost")
    func lockHeld() async throws {
        let isHeld = Mutex(false)
        let folder = scratch.folder("a")
        let one = Device(folder: folder, session: nil) { step in
            isHeld.withLock { $0 } && step == .locking ? .error(EWOULDBLOCK) : nil
        }
        isHeld.withLock { $0 = true }
        one.store.set(Int64(1), forKey: "a")
        #expect(!one.store.synchronize() && one.store.status.storageProblem != nil)
        let other = Device(folder: folder, session: nil)
        other.store.set(Int64(2), forKey: "b")
        #expect(other.store.synchronize())
        #expect(!one.store.synchronize())
        isHeld.withLock { $0 = false }
        // It is tried again without anybody asking.
        await one.pass(milliseconds: 60_000)
        #expect(one.store.status.storageProblem == nil)
        #expect(other.store.synchronize() && other.store.longLong(forKey: "a") == 1)
        #expect(other.store.longLong(forKey: "b") == 2 && one.store.longLong(forKey: "b") == 2)
    }

    @Test("a file of a later version is left alone")
    func laterVersion() async throws {
        let path = PreferencePlace(folder: scratch.folder("a")).path(of: nil)
        try FileManager.default.createDirectory(atPath: scratch.folder("a"), withIntermediateDirectories: true)
        let later = Data("zonekeeper-preferences 2 0\n{}".utf8)
        try later.write(to: URL(filePath: path))
        let one = Device(folder: scratch.folder("a"), session: nil)
        one.store.set("x", forKey: "a")
        #expect(!one.store.synchronize() && one.store.string(forKey: "a") == "x")
        #expect(one.store.status.storageProblem?.contains("later version") == true)
        #expect(try Data(contentsOf: URL(filePath: path)) == later)
    }

    @Test("edits are on disk a tenth of a second later without a call of synchronize")
    func savedByItself() async throws {
        let folder = scratch.folder("a")
        let one = Device(folder: folder, session: nil)
        one.store.set("x", forKey: "a")
        await one.pass(milliseconds: 100)
        let other = Device(folder: folder, session: nil)
        #expect(other.store.string(forKey: "a") == "x")
    }

    @Test("an edit made while the file is written is on disk after the next write, though its key was in the first one")
    func editedWhileWritten() async throws {
        let folder = scratch.folder("a")
        let edited = Mutex<NSUbiquitousKeyValueStore?>(nil)
        let one = Device(folder: folder, session: nil) { step in
            if step == .written { edited.withLock { $0.take() }?.set("new", forKey: "a") }
            return nil
        }
        await one.store.engine.idle()
        edited.withLock { $0 = one.store }
        one.store.set("old", forKey: "a")
        #expect(one.store.synchronize())
        #expect(Device(folder: folder, session: nil).store.string(forKey: "a") == "old")
        await one.pass(milliseconds: 100)
        #expect(Device(folder: folder, session: nil).store.string(forKey: "a") == "new")
        #expect(one.store.string(forKey: "a") == "new")
    }

    @Test("two processes of one user lose no edits of each other, and each is told of the other's")
    func twoProcesses() async throws {
        cloud.with { $0.isOnline = false }
        let folder = scratch.folder("a")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        PreferencePlace(folder: folder).remember("ann", of: ann.name)
        let (one, two) = (Device(folder: folder, session: ann), Device(folder: folder, session: ann))
        for number in 0..<20 {
            one.store.set(Int64(number), forKey: "one\(number)")
            two.store.set(Int64(number), forKey: "two\(number)")
            if number % 3 == 0 { #expect(one.store.synchronize() && two.store.synchronize()) }
        }
        #expect(one.store.synchronize() && two.store.synchronize() && one.store.synchronize())
        for device in [one, two] { #expect(device.store.dictionaryRepresentation.count == 40) }
        #expect(Set(one.news().flatMap(\.keys)) == Set((0..<20).map { "two\($0)" }))
        #expect(Set(two.news().flatMap(\.keys)) == Set((0..<20).map { "one\($0)" }))
        cloud.with { $0.isOnline = true }
        try await one.sync()
        try await two.sync()
        #expect(cloud.visible("ann").count == 40)
        one.store.set("last", forKey: "one0")
        try await one.sync()
        #expect(two.store.synchronize() && two.store.string(forKey: "one0") == "last")
    }

    @Test("a restart in the middle of an upload repeats it under its name: it is done once")
    func restartMidUpload() async throws {
        let folder = scratch.folder("a")
        do {
            let one = Device(folder: folder, session: ann)
            try await one.sync()
            cloud.with { $0.answersToLose = 1 }
            one.store.set("x", forKey: "a")
            await #expect(throws: NSUbiquitousKeyValueStore.SyncError.self) { try await one.store.synchronizeNow() }
            await one.store.engine.idle()
        }
        #expect(cloud.with { $0.server.stores["ann"]?.sequence } == 1)
        let again = Device(folder: folder, session: ann)
        #expect(again.store.string(forKey: "a") == "x")
        try await again.sync()
        #expect(cloud.with { $0.server.stores["ann"]?.sequence } == 1 && again.store.status(forKey: "a") == .synced)
        #expect(again.news().isEmpty)
    }

    @Test("a value that is no property list is refused with its place, without a crash")
    func noPropertyList() {
        let one = Device(folder: scratch.folder("a"), session: nil)
        struct Thing {}
        one.store.set(["good": 1, "bad": [Thing()]] as [String: Any], forKey: "thing")
        one.store.set(UInt64.max as Any?, forKey: "huge")
        #expect(one.store.object(forKey: "thing") == nil && one.store.object(forKey: "huge") == nil)
        #expect(one.store.refusals.map(\.key) == ["thing", "huge"])
        #expect(one.store.refusals.first?.reason.contains("bad[0]") == true)
        one.store.set(1 as Any?, forKey: "thing")
        #expect(one.store.refusals.map(\.key) == ["huge"] && one.news().isEmpty)
    }

    @Test("an array that contains itself is refused, and so is one that grows with each look into it")
    func endless() {
        let one = Device(folder: scratch.folder("a"), session: nil)
        let endless = NSMutableArray()
        endless.add(endless)
        one.store.set(endless as Any?, forKey: "endless")
        let twice = NSMutableDictionary()
        twice["one"] = [twice, twice, twice, twice, twice]
        twice["two"] = "text"
        one.store.set(twice as Any?, forKey: "twice")
        one.store.set([[Int](repeating: 0, count: 9_999), [0]], forKey: "many")
        one.store.set([[[[[[[[[[[["deep"]]]]]]]]]]]], forKey: "deep")
        one.store.set([[[[[[[[[[[[["deeper"]]]]]]]]]]]]], forKey: "deeper")
        #expect(one.store.array(forKey: "deep") != nil)
        #expect(one.store.refusals.map(\.key) == ["endless", "twice", "many", "deeper"])
        let reasons = one.store.refusals.map(\.reason)
        #expect(reasons[0].contains("contains itself") && reasons[2].contains("more than 10000 members"))
        #expect(reasons[3].contains("deeper than 12"))
        endless.removeAllObjects()
        twice.removeAllObjects()
    }

    @Test("folders that are made are made durably, each in the one above it")
    func durableFolders() throws {
        let steps = Mutex<[PreferenceFile.Step]>([])
        let path = scratch.folder("a") + "/b/c/ann.json"
        let file = PreferenceFile(path: path) { step in
            steps.withLock { $0.append(step) }
            return nil
        }
        try file.lock()
        #expect(steps.withLock { $0 } == [.folderMade, .folderMade, .folderMade, .folderMade, .locking])
        file.unlock()
        try file.lock()
        #expect(steps.withLock { $0.count } == 6)
        let refused = PreferenceFile(path: scratch.folder("z") + "/ann.json") { $0 == .folderMade ? .error(EIO) : nil }
        #expect(throws: PreferenceFileError.self) { try refused.lock() }
    }

    @Test("a store without a service has nothing to watch, and asks for nothing by the clock")
    func noPolling() async {
        let one = Device(folder: scratch.folder("a"), session: nil)
        await one.store.engine.idle()
        var backoff = WatchBackoff()
        #expect(await one.store.engine.watchOnce(&backoff) == .nothing)
        #expect(one.clock.timers == 0)
        one.store.close()
        #expect(await one.store.engine.watchOnce(&backoff) == .closed)
        let event = AutoResetEvent()
        event.signal()
        event.signal()
        await event.wait()
        async let heard: Void = event.wait()
        event.signal()
        await heard
    }

    @Test("a change is told by the server itself, without anybody asking")
    func push() async throws {
        var session = ann
        session.pushes = true
        let one = Device(folder: scratch.folder("a"), session: session)
        try await one.sync()
        cloud.set(["theme": .string("dark")], user: "ann")
        #expect(await one.nextNews() == [.init(reason: 0, keys: ["theme"])])
        #expect(one.store.string(forKey: "theme") == "dark")
        cloud.set(["theme": nil], user: "ann")
        #expect(await one.nextNews() == [.init(reason: 0, keys: ["theme"])])
        #expect(one.store.object(forKey: "theme") == nil)
    }

    @Test("the first download can be waited for while there is no network, and the waiting can be given up")
    func waiting() async throws {
        cloud.with { $0.isOnline = false }
        let one = Device(folder: scratch.folder("a"), session: ann)
        let given = Task { try await one.store.waitForInitialSync() }
        given.cancel()
        await #expect(throws: CancellationError.self) { try await given.value }
        await one.store.engine.idle()
        await #expect(throws: NSUbiquitousKeyValueStore.SyncError.self) {
            try await Device(folder: scratch.folder("b"), session: nil).store.waitForInitialSync()
        }
        #expect(one.store.status.serviceProblem?.contains("no network") == true)
        cloud.with { $0.isOnline = true }
        async let done: Void = one.store.waitForInitialSync()
        await one.pass(milliseconds: 1000)
        try await done
        #expect(one.store.status.isInitialSyncCompleted && one.store.status.userRecordName == "ann")
    }
}
