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
            let (isCurrent, isSame, from) = state.withLock { state in
                (state.epoch == epoch, state.core.account == account && state.place == place, state.core.account)
            }
            guard isCurrent, !isSame || account != nil else { return nil }
            let source = disk.file
            let target = isSame ? source : PreferenceFile(path: place.path(of: account), fault: dependencies.fault)
            let unowned = account == nil ? [] : unownedFiles(of: place, except: source)
            let files = unowned + (isSame ? [source] : [source, target])
            var problem: String?
            // Always in the same order, so that two processes cannot wait for each other.
            for file in files.sorted(by: { $0.path < $1.path }) {
                do throws(PreferenceFileError) { try file.lock() } catch { problem = error.description }
            }
            defer { for file in files { file.unlock() } }
            var effects = takeOver(&disk, &problem)
            // While no user is signed in, the file in use is unowned, too.
            let shown = state.withLock { $0.core.copy }
            let takesShown = from == nil && account != nil && (shown.claimant == nil || shown.claimant == account)
            if takesShown { source.mark(shown, for: account, &problem) }
            let claims = unowned.compactMap { $0.claim(for: account, &problem) }
            let move = isSame ? nil : target.load()
            let exchanged = exchange(account, place, move?.copy, takesShown: takesShown, claims.map(\.copy))
            if let move { leave(source, for: target, move, exchanged, takesShown: takesShown, &disk, &problem) }
            if move != nil || !claims.isEmpty {
                let isWritten = problem == nil && target.save(exchanged.after, &problem)
                disk.isDirty = !isWritten
                let taken = claims + (takesShown ? [(source, exchanged.before)] : [])
                if isWritten { Self.empty(taken, &problem) }
            }
            note(storage: problem)
            effects.append(exchanged.effects)
            return (effects, exchanged.link)
        }
        if let done { perform(done.0, done.1) }
    }

    /// The files of values that were set while no user was signed in.
    private func unownedFiles(of place: PreferencePlace, except source: PreferenceFile) -> [PreferenceFile] {
        place.unownedPaths.filter { $0 != source.path && FileManager.default.fileExists(atPath: $0) }
            .map { PreferenceFile(path: $0, fault: dependencies.fault) }
    }

    /// Goes from one account's file to another's.
    private func leave(
        _ source: PreferenceFile, for target: PreferenceFile, _ loaded: PreferenceFile.Loaded, _ exchanged: Exchange,
        takesShown: Bool, _ disk: inout Disk, _ problem: inout String?
    ) {
        // An edit made just before belongs to the account that the app saw.
        if exchanged.hasUnsaved || disk.isDirty, !takesShown { source.save(exchanged.before, &problem) }
        disk = Disk(file: target)
        if let damage = loaded.problem { dependencies.log(damage) }
        if !loaded.isReadable { problem = problem ?? loaded.problem }
    }

    /// Empties the files whose values another file has now.
    private static func empty(_ taken: [(file: PreferenceFile, copy: PreferenceCopy)], _ problem: inout String?) {
        for (file, copy) in taken where !copy.rows.isEmpty {
            file.save(PreferenceCopy(device: copy.device), &problem)
        }
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
