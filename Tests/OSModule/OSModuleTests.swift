// Foundation's headers define the C library's lock too, and with MemberImportVisibility its initialiser is theirs.
import CoreFoundation
import Foundation
import Testing
import os
import os.log

/// Code as apps write it with `import os` alone: that it compiles is most of the test.
@Suite("The module os")
struct OSModuleTests {
    private static let log = OSLog(subsystem: "com.example.app", category: "sync")

    @Test("The lock of C keeps threads apart, and is open at first")
    func unfairLock() {
        let lock = os_unfair_lock_t.allocate(capacity: 1)
        defer { lock.deallocate() }
        lock.initialize(to: os_unfair_lock())
        #expect(os_unfair_lock_trylock(lock))
        #expect(!os_unfair_lock_trylock(lock))
        os_unfair_lock_unlock(lock)
        os_unfair_lock_lock(lock)
        os_unfair_lock_unlock(lock)
    }

    @Test("The lock around a value is held by one at a time")
    func allocatedLock() async {
        let lock = OSAllocatedUnfairLock(initialState: 0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { lock.withLock { $0 += 1 } } }
        }
        #expect(lock.withLock { $0 } == 100)
        let outer = lock.withLockIfAvailable { _ in lock.withLockIfAvailable { $0 } == nil }
        #expect(outer == true, "it is held while the body runs")
        #expect(OSAllocatedUnfairLock().withLock { 7 } == 7)
    }

    @Test("Calls as apps write them are taken, with types, formats and interpolated values")
    func calls() {
        os_log("plain")
        os_log("failed: \(CocoaError(.fileNoSuchFile).localizedDescription)")
        os_log("saved %{public}@ of %d", log: Self.log, type: .info, "a" as NSString, 3)
        os_log(.debug, log: Self.log, "%d", 3)
        os_log(.error, log: Self.log, "failed: \(3)")
        Logger(Self.log).info("\(nil as NSObject?) and \("x" as NSString?, privacy: .public)")
        os_signpost(.event, log: Self.log, name: "page", "%d records", 3)
        let signposter = OSSignposter(logHandle: Self.log)
        let state = signposter.beginInterval("fetch", id: signposter.makeSignpostID())
        signposter.emitEvent("page", "\(3) records")
        signposter.endInterval("fetch", state)
        #expect(signposter.withIntervalSignpost("sum") { 1 + 1 } == 2)
        #expect(!OSLog.disabled.isEnabled(type: .fault) && OSLog.default.isEnabled(type: .fault))
        #expect(!OSSignposter.disabled.isEnabled && !OSLog.disabled.signpostsEnabled)
    }
}
