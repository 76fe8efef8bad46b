import Crypto
import Synchronization

/// Lets each signature of a server-to-server key through once.
///
/// Knows a signature by its number r, not by its bytes: of a good signature anyone can make one other good one, with
/// the same r. Remembers a signature for as long as its date is fresh. Where there are more than `signaturesMax`, those
/// with the oldest dates are forgotten, and whatever is dated as they were is refused from then on: memory is bounded,
/// and a replay never gets through.
///
/// One leader's memory. What earlier leaders let through it does not know; so it lets through no date of theirs
/// (`begin`), and no date that is still to come, which would outlive the one who remembers it. Thread-safe.
package final class ReplayGuard: Sendable {
    /// What a signature is that was verified.
    package enum Verdict: Hashable, Sendable {
        /// Seen for the first time, or asked again by the same asker; it counts as used from now on.
        case new
        /// Used before: a replay.
        case used
        /// Dated in another leader's time, or as forgotten signatures were: it may be new or used. The request must be
        /// signed again.
        case tooOld
        /// Dated so far ahead; nothing was remembered. Ask again then.
        case ahead(milliseconds: Int64)
    }

    /// Half of r, which is as good as random.
    private struct Fingerprint: Hashable {
        var high: UInt64
        var low: UInt64
    }

    private struct State {
        /// By date, in steps of `step`, with who asked.
        var seen: [Int64: [Fingerprint: UInt64]] = [:]
        var count = 0
        /// The steps of which signatures were forgotten: dates in them are refused. A clock that was ahead leaves some
        /// that are still to come, and those before them stay good.
        var forgotten: Set<Int64> = []
        /// Dates in this step and before are refused, because too many were forgotten to know them one by one.
        var floor = Int64.min
        /// Dates up to this one are refused.
        var begun = Int64.min
    }

    private static let step: Int64 = 30_000
    /// A day.
    private static let forgottenMax = 2_880

    private let window: Int64
    private let countMax: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - windowMilliseconds: that of `SignatureCheck`.
    ///   - signaturesMax: each takes about 40 bytes.
    package init(windowMilliseconds: Int64 = SignatureCheck.windowMilliseconds, signaturesMax: Int = 1_000_000) {
        precondition(windowMilliseconds >= 0 && signaturesMax >= 1, "\(windowMilliseconds) ms, \(signaturesMax)")
        window = windowMilliseconds
        countMax = signaturesMax
    }

    /// Begins to answer for all: whatever is dated until `time` may have been let through by another, and is refused.
    ///
    /// - Parameter time: milliseconds since 1970. A date of whole seconds counts as the second's beginning.
    package func begin(at time: Int64) { state.withLock { $0.begun = time } }

    /// Judges a verified signature, and remembers it if it is new.
    ///
    /// Call it after `SignatureCheck.verify`, so that only holders of a key can fill the memory or use up a signature.
    ///
    /// - Parameters:
    ///   - nonce: random, one for each question; a caller that lost the answer asks again with the same nonce and gets
    /// the same answer.
    ///   - now: milliseconds since 1970.
    package func admit(_ signature: RequestSignature, nonce: UInt64, now: Int64) -> Verdict {
        guard let fingerprint = Self.fingerprint(signature.signature) else { return .used }
        let slot = Self.slot(of: signature.time)
        return state.withLock { state in
            forgetExpired(&state, now: now)
            if let asker = state.seen[slot]?[fingerprint] { return asker == nonce ? .new : .used }
            guard signature.time > state.begun, slot > state.floor, !state.forgotten.contains(slot) else {
                return .tooOld
            }
            guard signature.time <= now else { return .ahead(milliseconds: signature.time - now) }
            state.seen[slot, default: [:]][fingerprint] = nonce
            state.count += 1
            forgetOldest(&state, besides: slot)
            return .new
        }
    }

    /// How many signatures are remembered.
    package var signatureCount: Int { state.withLock { $0.count } }

    private func forgetExpired(_ state: inout State, now: Int64) {
        // A signature of the last moment of its step is fresh for the window after that.
        let last = Self.slot(of: now.subtractingReportingOverflow(window).partialValue) - 1
        // Not all up to `last`: by a clock that is ahead for a moment all would be refused until that time comes.
        for slot in state.seen.keys where slot <= last { forget(slot, &state) }
    }

    private func forgetOldest(_ state: inout State, besides slot: Int64) {
        while state.count > countMax, let oldest = state.seen.keys.min(), oldest != slot { forget(oldest, &state) }
        // The step of the one that came last is the oldest: it is refused as a whole from now on, this one was let
        // through.
        if state.count > countMax { forget(slot, &state) }
    }

    private func forget(_ slot: Int64, _ state: inout State) {
        state.count -= state.seen.removeValue(forKey: slot)?.count ?? 0
        state.forgotten.insert(slot)
        guard state.forgotten.count > Self.forgottenMax, let oldest = state.forgotten.min() else { return }
        state.forgotten.remove(oldest)
        state.floor = max(state.floor, oldest)
    }

    private static func slot(of time: Int64) -> Int64 {
        time >= 0 ? time / step : (time - step + 1) / step
    }

    private static func fingerprint(_ signature: [UInt8]) -> Fingerprint? {
        guard let raw = try? P256.Signing.ECDSASignature(derRepresentation: signature).rawRepresentation else {
            return nil
        }
        let r = Array(raw.prefix(16))
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        return Fingerprint(high: number(r[..<8]), low: number(r[8...]))
    }
}
