import Foundation
import Synchronization

/// Who speaks for which account: taken together with what the core asks for, so that one user's values go to no other.
struct PreferenceLink: Sendable {
    var service: any PreferenceService
    var account: String
    var device: String
    var place: PreferencePlace
    var epoch: Int
}

extension PreferenceEngine.State {
    /// Forgets edits that were answered, or that made room for a newer value, while they could not be saved: they are
    /// not to come again.
    mutating func dropAnswered() {
        let rows = core.copy.rows
        unsaved.removeAll { rows[$0.key]?.edit == nil && rows[$0.key]?.sent == nil }
    }

    /// Nil where there is nobody to send anything to.
    var link: PreferenceLink? {
        guard let service, let account = core.account, !isClosed else { return nil }
        return PreferenceLink(
            service: service, account: account, device: core.copy.device, place: place, epoch: epoch)
    }
}

extension PreferenceEngine {
    /// Does an event, on the caller's thread.
    func transact(_ event: PreferenceEvent) {
        let (effects, link) = disk.withLock { disk in
            var problem: String?
            do throws(PreferenceFileError) { try disk.file.lock() } catch { problem = error.description }
            defer { disk.file.unlock() }
            var effects = takeOver(&disk, &problem)
            let moment = moment
            let (result, link, copy, unsaved) = state.withLock { state in
                let result = state.core.handle(event, at: moment)
                if case .syncRequested = event { state.armWaiters() }
                state.isSaveScheduled = false
                if disk.isDirty { state.dropAnswered() }
                return (result, state.link, state.core.copy, state.unsaved.count)
            }
            if result.persist || unsaved > 0 || disk.isDirty { save(copy, unsaved, &disk, &problem) }
            note(storage: problem)
            effects.append(result)
            return (effects, link)
        }
        perform(effects, link)
    }

    /// Writes the copy, unless something is wrong with the file or its lock: another process's edits may be in it then.
    private func save(_ copy: PreferenceCopy, _ unsaved: Int, _ disk: inout Disk, _ problem: inout String?) {
        if problem == nil {
            do throws(PreferenceFileError) { try disk.file.write(copy) } catch { problem = error.description }
        }
        disk.isDirty = problem != nil
        if problem == nil {
            disk.failures = 0
            state.withLock { $0.unsaved.removeFirst(unsaved) }
            return
        }
        // It goes on in memory: what the server is told is not lost, and it is tried again.
        disk.failures += 1
        scheduleSave(after: min(60_000, 500 << Int64(min(disk.failures, 8))))
    }

    /// A save that happens some time later; one at a time.
    private func scheduleSave(after milliseconds: Int64) {
        let mustSchedule = state.withLock { state in
            defer { state.isSaveScheduled = true }
            return !state.isSaveScheduled && !state.isClosed
        }
        if !mustSchedule { return }
        surroundings.clock.after(milliseconds, on: queue) { [weak self] in self?.enqueue(.woken) }
    }

    /// Goes on from what another process wrote.
    /// - Returns: what the app is told of it.
    func takeOver(_ disk: inout Disk, _ problem: inout String?) -> PreferenceEffects {
        do throws(PreferenceFileError) {
            switch try disk.file.read() {
            case .missing, .unchanged: break
            case .damaged(let reason):
                surroundings.log(reason)
                disk.isDirty = true
            case .copy(let copy):
                let moment = moment
                disk.isDirty = false
                return state.withLock { $0.core.adopt(copy, replaying: $0.unsaved, at: moment) }
            }
        } catch {
            problem = problem ?? error.description
        }
        return PreferenceEffects()
    }

    func note(storage problem: String?) {
        let isNews = state.withLock { state in
            defer { state.storageProblem = problem }
            return problem != nil && state.storageProblem != problem
        }
        if let problem, isNews {
            surroundings.log("\(problem); preferences are kept in memory until it can be written")
        }
    }

    // Doing what the core asks for.

    /// Tells the app; nothing here needs the disk.
    func tell(_ effects: PreferenceEffects) {
        for refusal in effects.refusals { surroundings.log("refused: \(refusal.reason)") }
        if effects.notifications.isEmpty { return }
        let post = state.withLock { $0.post }
        for notification in effects.notifications { post(notification) }
    }

    func perform(_ effects: PreferenceEffects, _ link: PreferenceLink?) {
        tell(effects)
        resumeWaiters(refusals: effects.refusals)
        if let link {
            if let batch = effects.upload { upload(batch, link) }
            if let ticket = effects.fetch { fetch(ticket, link) }
            if let time = effects.wakeAt { wake(at: time) }
        }
        failStalledWaiters()
        bell.ring()
    }

    private func wake(at time: Int64) {
        let now = surroundings.clock.now
        let mustSchedule = state.withLock { state in
            if let scheduled = state.wakeAt, scheduled > now, scheduled <= time { return false }
            state.wakeAt = time
            return true
        }
        if !mustSchedule { return }
        surroundings.clock.after(max(1, time - now), on: queue) { [weak self] in self?.enqueue(.woken) }
    }
}
