import Foundation
import NIOCore
import RecordModel
import Synchronization

@testable import zonekeeper

/// A limit as the generic cell rate algorithm keeps it: one number, when the next request is due if all came evenly.
struct GCRALimit: Sendable {
    let intervalNanoseconds: UInt64
    /// How much earlier than due a request may come: the burst.
    let toleranceNanoseconds: UInt64
    private var due: UInt64 = 0

    /// - Parameters:
    ///   - perSecond: above 0.
    ///   - burst: requests that may come at once, at least 1.
    init(perSecond: Double, burst: Int) {
        precondition(perSecond > 0 && burst >= 1, "\(perSecond)/s with a burst of \(burst)")
        intervalNanoseconds = UInt64(1_000_000_000 / perSecond)
        toleranceNanoseconds = intervalNanoseconds * UInt64(burst - 1)
    }

    /// - Returns: nil when the request is accepted, else nanoseconds until one would be.
    mutating func decide(now: UInt64) -> UInt64? {
        if due > now + toleranceNanoseconds { return due - now - toleranceNanoseconds }
        due = max(due, now) + intervalNanoseconds
        return nil
    }
}

extension NullServer {
    /// Refuses POSTs beyond a limit as nodes do.
    static func limited(_ limit: GCRALimit, announcing quota: Int) -> Responder {
        let state = Mutex(limit)
        let policy = "RateLimit-Policy: \"requests\";q=\(quota);w=1\r\nRateLimit: \"requests\";r=0;t=1\r\n"
        return { request in
            guard request.method == "POST" else { return nil }
            guard let wait = state.withLock({ $0.decide(now: NIODeadline.now().uptimeNanoseconds) }) else {
                let good = #"{"records":[{"recordChangeTag":"1"}]}"#
                return answer("200 OK", good, headers: policy)
            }
            let seconds = String(Double(wait) / 1_000_000_000, digits: 6)
            let body = #"{"uuid":"0","serverErrorCode":"THROTTLED","reason":"the limit","retryAfter":\#(seconds)}"#
            return answer(
                "429 Too Many Requests", body, headers: "Retry-After: \(wait / 1_000_000_000 + 1)\r\n" + policy)
        }
    }
}

/// What a node does about a container's limits, with faults to order: its answers to `/admin/1/limits`.
final class LimitsNode: Sendable {
    struct State: Sendable {
        /// What was set for the container itself.
        var values: [String: JSONValue] = [:]
        /// Of each PATCH, in order.
        var patches: [[JSONValue.Member]] = []
        /// Answers to coming PATCHes, from the first; nil: the right one. What is refused with 503 is done all the
        /// same.
        var faults: [String?] = []
    }

    let state = Mutex(State())

    var responder: NullServer.Responder {
        { [self] request in
            guard request.path.hasPrefix("/admin/1/limits") else { return nil }
            guard request.method == "PATCH" else { return NullServer.answer("200 OK", shown) }
            guard case .object(let members)? = try? JSONParser.parse(Array(request.body.readableBytesView)) else {
                return NullServer.answer("400 Bad Request", "{}")
            }
            let fault = state.withLock { state -> String? in
                let fault = state.faults.isEmpty ? nil : state.faults.removeFirst()
                state.patches.append(members)
                if fault?.hasPrefix("4") != true {
                    for member in members { state.values[member.key] = member.value.isNull ? nil : member.value }
                }
                return fault
            }
            guard let fault else { return NullServer.answer("200 OK", shown) }
            return NullServer.answer(fault, #"{"serverErrorCode":"TRY_AGAIN_LATER","reason":"no leader"}"#)
        }
    }

    private var shown: String {
        let values = state.withLock { $0.values }
        let limits = ContainerLimit.allCases.map { limit in
            let own = values[limit.rawValue]
            return
                #"{"name":"\#(limit.rawValue)","value":\#(own?.plainText ?? "40"),"source":"\#(own == nil ? "default" : "container")"}"#
        }
        return #"{"limits":[\#(limits.joined(separator: ","))]}"#
    }
}
