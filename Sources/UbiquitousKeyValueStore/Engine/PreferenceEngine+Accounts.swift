import Foundation
import Synchronization

// Changes of the account. Values that were set while no user was signed in are in files of their own, called unowned.
// The first user to sign in takes them over.
extension PreferenceEngine {
    /// Replaces the core's copy by that of another user, or by the unowned one (nil). If a user is signed in
    /// afterwards, the values set while no user was signed in become that user's.
    /// - Parameter epoch: of the service that reported the account. A report of an earlier service is ignored.
    func changeAccount(to account: String?, place: PreferencePlace, epoch: Int) {
        let done = disk.withLock { disk -> (PreferenceEffects, PreferenceLink?)? in
            let (isCurrent, isSame) = state.withLock { state in
                (state.epoch == epoch, state.core.account == account && state.place == place)
            }
            guard isCurrent, !isSame || account != nil else { return nil }
            var files = AccountFiles(
                from: disk.file, to: isSame ? nil : place.path(of: account),
                unowned: account == nil ? [] : place.unownedPaths, fault: dependencies.fault)
            var problem: String?
            files.lock(&problem)
            defer { files.unlock() }
            var effects = takeOver(&disk, &problem)
            // While no user is signed in, the file in use is unowned, too; but another container's users do not get it.
            let shown = state.withLock { $0.core.copy }
            let isUnowned = account != nil && place.unownedPaths.contains(disk.file.path)
            let takesShown = isUnowned && (shown.claimant == nil || shown.claimant == account)
            let loaded = files.claim(for: account, shown: takesShown ? shown : nil, &problem)
            let exchanged = exchange(account, place, loaded?.copy, takesShown: takesShown, files.claimed)
            if let loaded {
                // An edit made just before belongs to the account that the app saw.
                if exchanged.hasUnsaved || disk.isDirty, !takesShown { disk.file.save(exchanged.before, &problem) }
                disk = Disk(file: files.target)
                if let damage = loaded.problem { dependencies.log(damage) }
                if !loaded.isReadable { problem = problem ?? loaded.problem }
            }
            if loaded != nil || !files.claimed.isEmpty {
                disk.isDirty = !files.save(exchanged.after, shown: takesShown ? exchanged.before : nil, &problem)
            }
            note(storage: problem)
            effects.append(exchanged.effects)
            return (effects, exchanged.link)
        }
        if let done { perform(done.0, done.1) }
    }

    /// The result of the step in which no edit may come between.
    private struct Exchange {
        var effects: PreferenceEffects
        var before: PreferenceCopy
        var after: PreferenceCopy
        var hasUnsaved: Bool
        var link: PreferenceLink?
    }

    /// - Parameters:
    ///   - copy: the account's; nil if the account stays.
    ///   - takesShown: whether the values that the app sees now are unowned and become the account's.
    private func exchange(
        _ account: String?, _ place: PreferencePlace, _ copy: PreferenceCopy?, takesShown: Bool,
        _ claims: [PreferenceCopy]
    ) -> Exchange {
        let moment = moment
        return state.withLock { state in
            let before = state.core.copy
            let hasUnsaved = !state.unsaved.isEmpty
            let unclaimed = (takesShown ? [before] : []) + claims
            var effects = PreferenceEffects()
            if let copy {
                effects = state.core.accountChanged(to: account, copy: copy, unclaimed: unclaimed, at: moment)
                state.unsaved = []
                state.place = place
            } else if !unclaimed.isEmpty {
                effects = state.core.claimed(unclaimed, at: moment)
            }
            return Exchange(
                effects: effects, before: before, after: state.core.copy, hasUnsaved: hasUnsaved, link: state.link)
        }
    }
}

/// The files of a change of the account: that of the account before, that of the next one, and unowned ones.
struct AccountFiles {
    private let source: PreferenceFile
    /// That of the next account; the same if the account stays.
    let target: PreferenceFile
    private let unowned: [PreferenceFile]
    /// Files whose values become the account's.
    private var claims: [(file: PreferenceFile, copy: PreferenceCopy)] = []

    /// - Parameters:
    ///   - path: of the next account's file; nil if the account stays.
    ///   - unowned: where files of values may be that were set while no user was signed in.
    init(
        from source: PreferenceFile, to path: String?, unowned: [String],
        fault: @escaping @Sendable (PreferenceFile.Step) -> PreferenceFile.Fault?
    ) {
        self.source = source
        target = path.map { PreferenceFile(path: $0, fault: fault) } ?? source
        self.unowned = unowned.filter { $0 != source.path && FileManager.default.fileExists(atPath: $0) }
            .map { PreferenceFile(path: $0, fault: fault) }
    }

    private var all: [PreferenceFile] { unowned + (source === target ? [source] : [source, target]) }

    /// Locks all, always in the same order, so that two processes cannot wait for each other.
    func lock(_ problem: inout String?) {
        for file in all.sorted(by: { $0.path < $1.path }) {
            do throws(PreferenceFileError) { try file.lock() } catch { problem = error.description }
        }
    }

    func unlock() { for file in all { file.unlock() } }

    /// The values of unowned files that become the account's.
    var claimed: [PreferenceCopy] { claims.map(\.copy) }

    /// Marks the unowned values that become the account's, and reads its own.
    /// - Parameter shown: the values of the file before, if they are among those.
    /// - Returns: nil if the account stays.
    mutating func claim(
        for account: String?, shown: PreferenceCopy?, _ problem: inout String?
    ) -> PreferenceFile.Loaded? {
        if let shown { source.mark(shown, for: account, &problem) }
        claims = unowned.compactMap { $0.claim(for: account, &problem) }
        return source === target ? nil : target.load()
    }

    /// Writes the account's copy, unless there was a problem, and empties the files whose values it has now.
    /// - Parameter shown: what the file before has, if these values became the account's.
    /// - Returns: whether it is written.
    func save(_ copy: PreferenceCopy, shown: PreferenceCopy?, _ problem: inout String?) -> Bool {
        guard problem == nil, target.save(copy, &problem) else { return false }
        let taken = claims + (shown.map { [(source, $0)] } ?? [])
        for (file, copy) in taken where !copy.rows.isEmpty {
            file.save(PreferenceCopy(device: copy.device), &problem)
        }
        return true
    }
}
