import Foundation
import RaftCore
import Synchronization
import Testing

@testable import CloudKit

@Suite("State of a sync engine")
struct SyncEngineStateTests {
    private let a = CKRecord.ID(recordName: "a")
    private let b = CKRecord.ID(recordName: "b")

    @Test("A change is there once and keeps its place; its opposite takes a new one")
    func pending() {
        let state = CKSyncEngine.State(nil)
        state.add(pendingRecordZoneChanges: [.saveRecord(a), .saveRecord(b), .saveRecord(a)])
        #expect(state.pendingRecordZoneChanges == [.saveRecord(a), .saveRecord(b)])
        state.add(pendingRecordZoneChanges: [.deleteRecord(a)])
        #expect(state.pendingRecordZoneChanges == [.saveRecord(b), .deleteRecord(a)])
        state.remove(pendingRecordZoneChanges: [.saveRecord(a), .saveRecord(b)])
        #expect(state.pendingRecordZoneChanges == [.deleteRecord(a)])
        let zone = CKRecordZone(zoneName: "z")
        state.add(pendingDatabaseChanges: [.saveZone(zone), .deleteZone(zone.zoneID), .saveZone(zone)])
        #expect(state.pendingDatabaseChanges == [.saveZone(zone)])
    }

    @Test("The order is that of an array, whatever is added, removed and moved")
    func model() {
        var random = SplitMix64(seed: 20)
        var (changes, model) = (PendingChanges<Int, Bool>(), [(item: Int, change: Bool)]())
        for _ in 0..<5_000 {
            let (item, change) = (Int.random(in: 0..<20, using: &random), Bool.random(using: &random))
            let revision = (changes.revision, changes.list)
            let place = model.firstIndex { $0 == (item, change) }
            switch Int.random(in: 0..<3, using: &random) {
            case 0:
                changes.add(change, for: item)
                if place == nil {
                    model.removeAll { $0.item == item }
                    model.append((item, change))
                }
            case 1:
                changes.remove(change, for: item)
                if let place { model.remove(at: place) }
            default:
                changes.moveBack(change, for: item)
                if let place { model.append(model.remove(at: place)) }
            }
            #expect(changes.list == model.map(\.change) && changes.isEmpty == model.isEmpty)
            if changes.revision == revision.0 { #expect(changes.list == revision.1) }
            #expect(changes.places.count <= 2 * model.count + 17)
        }
    }

    @Test("What was added again after it was sent stays when the first one is done")
    func addedAgain() {
        var changes = PendingChanges<String, Int>()
        changes.add(1, for: "a")
        changes.add(1, for: "b")
        let sent = changes.additions
        changes.add(1, for: "a")
        changes.remove(1, for: "a", sentAt: sent)
        changes.remove(1, for: "b", sentAt: sent)
        #expect(changes.list == [1] && !changes.isEmpty)
    }

    @Test("A change that failed and is still pending goes behind the others")
    func movedBack() {
        var changes = PendingChanges<String, Int>()
        for (place, item) in ["a", "b", "c"].enumerated() { changes.add(place, for: item) }
        changes.moveBack(0, for: "a")
        changes.moveBack(7, for: "b")
        #expect(changes.list == [1, 2, 0])
        // It is no new change: the answer to one that was sent before still removes it.
        changes.remove(0, for: "a", sentAt: 3)
        #expect(changes.list == [1, 2])
    }

    @Test("Adding changes one by one moves the list as seldom as adding to an array does, and compares no others")
    func linear() {
        let state = CKSyncEngine.State(nil)
        var places: Set<UnsafeRawPointer?> = []
        let count = 4_096
        for number in 0..<count {
            state.add(pendingRecordZoneChanges: [.saveRecord(CKRecord.ID(recordName: "\(number)"))])
            places.insert(state.current.recordChanges.places.withUnsafeBytes(\.baseAddress))
        }
        #expect(state.pendingRecordZoneChanges.count == count)
        // One that is copied with each addition has as many places as additions.
        #expect(places.count <= 32, "\(places.count)")

        let comparisons = Comparisons()
        var changes = PendingChanges<Int, Counted>()
        for number in 0..<count { changes.add(Counted(number: number, comparisons: comparisons), for: number) }
        for number in 0..<count { changes.add(Counted(number: number, comparisons: comparisons), for: number) }
        for number in 0..<count { changes.remove(Counted(number: number, comparisons: comparisons), for: number) }
        #expect(changes.isEmpty && changes.places.count <= 16)
        #expect(comparisons.count.load(ordering: .relaxed) == 2 * count)
    }

    private final class Comparisons: Sendable {
        let count = Atomic(0)
    }

    private struct Counted: Hashable, Sendable {
        var number: Int
        var comparisons: Comparisons

        static func == (left: Self, right: Self) -> Bool {
            left.comparisons.count.add(1, ordering: .relaxed)
            return left.number == right.number
        }

        func hash(into hasher: inout Hasher) { hasher.combine(number) }
    }

    @Test("A stored state is read as it was, and one of a later version is refused with words")
    func stored() throws {
        let state = CKSyncEngine.State(nil)
        let zones = ["y", "z"].map { CKRecordZone.ID(zoneName: $0) }
        state.update { content in
            content.user = "_ada"
            content.received(
                DatabaseChangesPage(
                    zones: [(zones[0], false, 1), (zones[1], false, 2), (.default, false, 0)],
                    token: CKServerChangeToken("t"), hasMore: false))
            content.zoneTokens[zones[0]] = CKServerChangeToken("u")
        }
        state.add(pendingDatabaseChanges: [.deleteZone(zones[0]), .saveZone(CKRecordZone(zoneID: zones[1]))])
        state.add(pendingRecordZoneChanges: [.saveRecord(b), .deleteRecord(a)])
        state.hasPendingUntrackedChanges = true
        let serialization = try #require(state.takeUntold())
        #expect(state.takeUntold() == nil)
        let data = try JSONEncoder().encode(serialization)
        let read = try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: data)
        #expect(read == serialization)
        let again = CKSyncEngine.State(read)
        #expect(again.current.user == "_ada" && again.current.databaseToken?.value == "t")
        #expect(again.zoneIDsWithUnfetchedServerChanges == zones)
        #expect(again.pendingRecordZoneChanges == [.saveRecord(b), .deleteRecord(a)])
        #expect(again.takeUntold() == nil)

        let text = String(decoding: data, as: UTF8.self).replacing(#""version":1"#, with: #""version":2"#)
        let error = #expect(throws: CKError.self) {
            try JSONDecoder().decode(CKSyncEngine.State.Serialization.self, from: Data(text.utf8))
        }
        #expect(error?.code == .incompatibleVersion)
    }

    @Test("A change of the state is told once, and setting what was there tells nothing")
    func untold() {
        let state = CKSyncEngine.State(nil)
        state.hasPendingUntrackedChanges = false
        #expect(state.takeUntold() == nil)
        state.hasPendingUntrackedChanges = true
        #expect(state.takeUntold() != nil)
        #expect(state.hasPending)
    }
}

@Suite("Schedule of a sync engine")
struct SyncScheduleTests {
    private func error(_ code: CKError.Code, retryAfter: Double? = nil) -> CKError {
        CKError(code, reason: "", details: CKErrorDetails(retryAfterSeconds: retryAfter))
    }

    @Test("It fetches at the start, and sends what is pending half a second later")
    func start() {
        var schedule = SyncSchedule()
        schedule.started(at: .seconds(10), hasPending: true)
        #expect(schedule.takeDue(at: .seconds(10)) == [.fetch])
        #expect(schedule.next == .seconds(10.5))
        #expect(schedule.takeDue(at: .seconds(10.5)) == [.send])
        #expect(schedule.next == nil)
    }

    @Test("Changes are collected: the first one says when they are sent and told")
    func collecting() {
        var schedule = SyncSchedule()
        schedule.stateChanged(at: .zero, hasPending: true)
        schedule.stateChanged(at: .milliseconds(90), hasPending: true)
        #expect(schedule.takeDue(at: .milliseconds(100)) == [.tell])
        #expect(schedule.next == .milliseconds(500))
    }

    @Test(
        "After failures the wait doubles up to five minutes, is never shorter than the server says, and success ends it"
    )
    func failures() {
        var schedule = SyncSchedule()
        for wait in [1, 2, 4, 8] {
            schedule.fetchEnded(error(.networkFailure), at: .zero)
            #expect(schedule.next == .seconds(wait))
        }
        for _ in 0..<100 { schedule.fetchEnded(error(.networkFailure), at: .zero) }
        #expect(schedule.next == .seconds(300))
        schedule.fetchEnded(error(.requestRateLimited, retryAfter: 1000), at: .zero)
        #expect(schedule.next == .seconds(1000))
        schedule.fetchEnded(nil, at: .zero)
        #expect(schedule.next == SyncSchedule.fetchInterval)
    }

    @Test("While notifications tell of changes they are seldom asked for, and one that comes in a fetch is not lost")
    func told() {
        var schedule = SyncSchedule()
        schedule.fetchEnded(nil, at: .zero)
        schedule.listening(at: .seconds(1))
        #expect(schedule.takeDue(at: .seconds(1)) == [.fetch])
        schedule.fetchWanted(at: .seconds(2))
        schedule.fetchEnded(nil, at: .seconds(3))
        #expect(schedule.takeDue(at: .seconds(3)) == [.fetch])
        schedule.fetchEnded(nil, at: .seconds(4))
        #expect(schedule.next == .seconds(4) + SyncSchedule.toldFetchInterval)
        schedule.listeningEnded(at: .seconds(5))
        #expect(schedule.takeDue(at: .seconds(5)) == [.fetch])
        schedule.fetchEnded(nil, at: .seconds(6))
        #expect(schedule.next == .seconds(6) + SyncSchedule.fetchInterval)
    }

    @Test("A server that refuses notifications again and again is asked at intervals, not without pause")
    func refused() {
        var schedule = SyncSchedule()
        schedule.fetchEnded(nil, at: .zero)
        schedule.listening(at: .seconds(1))
        #expect(schedule.takeDue(at: .seconds(1)) == [.fetch])
        schedule.listeningFailed(at: .seconds(2))
        #expect(schedule.next == .seconds(2) + SyncSchedule.fetchInterval)
    }

    @Test("An app that adds again whatever fails does not make the engine send without pause")
    func hotLoop() {
        var schedule = SyncSchedule()
        for _ in 0..<5 { schedule.sendEnded(error(.partialFailure), at: .zero, hasPending: true) }
        #expect(schedule.next == .seconds(16))
        #expect(schedule.takeDue(at: .seconds(16)) == [.send])
        schedule.sendEnded(error(.partialFailure), at: .seconds(16), hasPending: false)
        #expect(schedule.next == nil)
    }

    @Test("A change that fails again and again delays no other; an error of the whole, and a pause of the server's, do")
    func failingChange() {
        var schedule = SyncSchedule()
        // When a change goes that is added a second after the error, to one that has failed five times.
        func next(after last: CKError) -> SyncClock.Instant? {
            for _ in 0..<5 { schedule.sendEnded(error(.partialFailure), at: .zero, hasPending: true) }
            schedule.sendEnded(last, at: .zero, hasPending: true)
            #expect(schedule.next == max(.seconds(32), .seconds(last.retryAfterSeconds ?? 0)))
            schedule.stateChanged(at: .seconds(1), hasPending: true)
            _ = schedule.takeDue(at: .seconds(1.1))
            defer { schedule.sendEnded(nil, at: .zero, hasPending: false) }
            return schedule.next
        }
        #expect(next(after: error(.partialFailure)) == .seconds(1.5))
        #expect(next(after: error(.networkFailure)) == .seconds(32))
        #expect(next(after: error(.serviceUnavailable, retryAfter: 90)) == .seconds(90))
        let details = CKErrorDetails(partialErrors: ["zone": error(.zoneBusy, retryAfter: 20)])
        #expect(next(after: CKError(.partialFailure, reason: "", details: details)) == .seconds(20))
    }

    @Test("A change that the app leaves out is asked for at growing intervals, and delays no other")
    func leftOut() {
        var schedule = SyncSchedule()
        var now = SyncClock.Instant.zero
        for wait in [1, 2, 4] {
            schedule.sendEnded(nil, at: now, hasPending: true)
            now += .seconds(wait)
            #expect(schedule.next == now && schedule.takeDue(at: now) == [.send])
        }
        schedule.sendEnded(nil, at: now, hasPending: true)
        schedule.stateChanged(at: now, hasPending: true)
        #expect(schedule.takeDue(at: now + SyncSchedule.tellDelay) == [.tell])
        #expect(schedule.next == now + SyncSchedule.sendDelay)
        // The next failure waits no longer for it.
        _ = schedule.takeDue(at: now + SyncSchedule.sendDelay)
        schedule.sendEnded(error(.networkFailure), at: .seconds(20), hasPending: true)
        #expect(schedule.next == .seconds(21))
    }

    @Test("A zone that is busy is left alone for as long as it wants, another account is not")
    func busyZone() {
        var schedule = SyncSchedule()
        let busy = error(.zoneBusy, retryAfter: 40)
        let details = CKErrorDetails(partialErrors: ["zone": busy, "other": error(.unknownItem)])
        schedule.sendEnded(CKError(.partialFailure, reason: "", details: details), at: .zero, hasPending: true)
        #expect(schedule.next == .seconds(40))
        schedule.listeningEnded(at: .seconds(2))
        #expect(schedule.takeDue(at: .seconds(2)) == [.fetch])
        #expect(schedule.next == .seconds(2) + SyncSchedule.sendDelay)
    }

    @Test("What was added at the end of a send goes half a second later")
    func addedAtTheEnd() {
        var schedule = SyncSchedule()
        schedule.stateChanged(at: .seconds(1), hasPending: true)
        schedule.sendEnded(nil, at: .seconds(1), hasPending: true)
        _ = schedule.takeDue(at: .seconds(1.1))
        #expect(schedule.next == .seconds(1.5))
    }

    @Test("A notification does not bring a fetch forward that the server wants later, another account does")
    func fetchNotBefore() {
        var schedule = SyncSchedule()
        schedule.fetchEnded(error(.requestRateLimited, retryAfter: 20), at: .zero)
        schedule.fetchWanted(at: .seconds(1))
        #expect(schedule.next == .seconds(20))
        schedule.listeningEnded(at: .seconds(2))
        #expect(schedule.next == .seconds(2))
        // Where the server did not say when, a notification shows that it can be asked.
        schedule.fetchEnded(error(.networkFailure), at: .seconds(3))
        schedule.fetchWanted(at: .seconds(3))
        #expect(schedule.next == .seconds(3))
    }
}
