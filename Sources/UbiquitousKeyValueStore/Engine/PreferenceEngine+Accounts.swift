import Foundation
import Synchronization

extension PreferenceEngine {
    /// Another user's copy takes the place of the core's, or nobody's (nil); where somebody is signed in, now or still,
    /// what was set while nobody was becomes that user's.
    /// - Parameter epoch: of the service that says so; nothing is done if there is another by now.
    func changeAccount(to account: String?, place: PreferencePlace, epoch: Int) {
        let done = disk.withLock { disk -> (PreferenceEffects, PreferenceLink?)? in
            let (isCurrent, isSame, from) = state.withLock { state in
                (
                    state.epoch == epoch, state.core.account == account && state.place == place, state.core.account
                )
            }
            guard isCurrent, !isSame || account != nil else { return nil }
            let source = disk.file
            let target = isSame ? source : PreferenceFile(path: place.path(of: account), fault: surroundings.fault)
            let nobodys = account == nil ? [] : nobodysFiles(of: place, besides: source)
            var problem: String?
            let files = nobodys + (isSame ? [source] : [source, target])
            // Always in the same order, so that no two processes wait for each other.
            for file in files.sorted(by: { $0.path < $1.path }) {
                do throws(PreferenceFileError) { try file.lock() } catch { problem = error.description }
            }
            defer { for file in files { file.unlock() } }
            var effects = takeOver(&disk, &problem)
            // While nobody is signed in, the file at hand is nobody's too.
            let shown = state.withLock { $0.core.copy }
            let isOurs = from == nil && account != nil && (shown.claimant == nil || shown.claimant == account)
            if isOurs { _ = mark(source, shown, for: account, &problem) }
            let claims = nobodys.compactMap { claim($0, for: account, &problem) }
            let move = isSame ? nil : Self.load(target)
            let exchanged = exchange(account, place, move?.copy, isOurs: isOurs, claims.map(\.copy))
            if !isSame {
                // An edit of the last moment belongs to whom the app saw.
                if exchanged.hasUnsaved || disk.isDirty, !isOurs { write(exchanged.before, to: source, &problem) }
                disk = Disk(file: target)
                if let damage = move?.problem { surroundings.log(damage) }
                if move?.isReadable == false { problem = problem ?? move?.problem }
            }
            if !isSame || !claims.isEmpty {
                let isWritten = problem == nil && write(exchanged.after, to: target, &problem)
                disk.isDirty = !isWritten
                if isWritten {
                    for (file, copy) in claims + (isOurs ? [(source, exchanged.before)] : []) where !copy.rows.isEmpty {
                        write(PreferenceCopy(device: copy.device), to: file, &problem)
                    }
                }
            }
            note(storage: problem)
            effects.append(exchanged.effects)
            return (effects, exchanged.link)
        }
        if let done { perform(done.0, done.1) }
    }

    /// The files of what was set while nobody was signed in.
    private func nobodysFiles(of place: PreferencePlace, besides source: PreferenceFile) -> [PreferenceFile] {
        place.nobodysPaths.filter { $0 != source.path && FileManager.default.fileExists(atPath: $0) }
            .map { PreferenceFile(path: $0, fault: surroundings.fault) }
    }

    /// What the user may have of a file of nobody's; nil if there is nothing, or it is another user's by now.
    private func claim(
        _ file: PreferenceFile, for account: String?, _ problem: inout String?
    ) -> (file: PreferenceFile, copy: PreferenceCopy)? {
        let loaded = Self.load(file)
        guard loaded.isReadable, !loaded.copy.rows.isEmpty else { return nil }
        guard loaded.copy.claimant == nil || loaded.copy.claimant == account else { return nil }
        return mark(file, loaded.copy, for: account, &problem) ? (file, loaded.copy) : nil
    }

    /// Says whose a copy of nobody's will be, before it is in that user's file: if the process ends in between, nobody
    /// else gets it.
    private func mark(
        _ file: PreferenceFile, _ copy: PreferenceCopy, for account: String?, _ problem: inout String?
    ) -> Bool {
        if copy.rows.isEmpty || copy.claimant == account { return true }
        var marked = copy
        marked.claimant = account
        return write(marked, to: file, &problem)
    }

    @discardableResult
    private func write(_ copy: PreferenceCopy, to file: PreferenceFile, _ problem: inout String?) -> Bool {
        do throws(PreferenceFileError) {
            try file.write(copy)
            return true
        } catch {
            problem = problem ?? error.description
            return false
        }
    }

    /// What came of the part of a change of account that edits must not come between.
    private struct Exchange {
        var effects: PreferenceEffects
        var before: PreferenceCopy
        var after: PreferenceCopy
        var hasUnsaved: Bool
        var link: PreferenceLink?
    }

    /// - Parameters:
    ///   - copy: the account's; nil where the account stays.
    ///   - isOurs: whether what the app sees now is nobody's, and becomes the account's.
    private func exchange(
        _ account: String?, _ place: PreferencePlace, _ copy: PreferenceCopy?, isOurs: Bool, _ claims: [PreferenceCopy]
    ) -> Exchange {
        let moment = moment
        return state.withLock { state in
            let before = state.core.copy
            let hasUnsaved = !state.unsaved.isEmpty
            let unclaimed = (isOurs ? [before] : []) + claims
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
