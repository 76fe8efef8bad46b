import Histogram

/// What was counted and measured in a run. Times are in nanoseconds.
struct LoadTally: Sendable {
    /// Times of requests that succeeded. In an open loop they count from when a request was due, so a stall shows in each
    /// request that was due meanwhile.
    private(set) var latencies = Self.histogram()
    /// Times until requests failed.
    private(set) var failureLatencies = Self.histogram()
    /// How late the generator itself was: from when a request was due until it was handed to the client.
    private(set) var lateness = Self.histogram()
    private(set) var errorsByCode: [String: Int] = [:]
    /// The reason that the first error of a code gave.
    private(set) var reasonsByCode: [String: String] = [:]
    private(set) var errorsByStatus: [Int: Int] = [:]
    private(set) var errorsByTransport: [String: Int] = [:]
    /// Due, but not sent: as many requests as allowed were under way.
    private(set) var notIssued = 0
    /// Of the failures, those that told to slow down.
    private(set) var throttled = 0

    /// Errors without `serverErrorCode` are counted under this name.
    static let noCode = "(no code)"

    var succeeded: Int { Int(latencies.totalCount) }
    var failed: Int { Int(failureLatencies.totalCount) }
    var unanswered: Int { errorsByTransport.values.reduce(0, +) }

    mutating func record(_ outcome: LoadOutcome, nanoseconds: UInt64) {
        switch outcome {
        case .succeeded: Self.record(nanoseconds, in: &latencies)
        case .throttled(let status, _):
            throttled += 1
            errorsByCode[LoadAnswer.throttledCode, default: 0] += 1
            errorsByStatus[status, default: 0] += 1
            Self.record(nanoseconds, in: &failureLatencies)
        case .failed(let status, let code, let reason):
            let code = code ?? Self.noCode
            errorsByCode[code, default: 0] += 1
            if let reason, reasonsByCode[code] == nil { reasonsByCode[code] = reason }
            errorsByStatus[status, default: 0] += 1
            Self.record(nanoseconds, in: &failureLatencies)
        case .unanswered(let reason):
            errorsByTransport[reason, default: 0] += 1
            Self.record(nanoseconds, in: &failureLatencies)
        }
    }

    mutating func record(latenessNanoseconds: UInt64) { Self.record(latenessNanoseconds, in: &lateness) }

    mutating func countNotIssued() { notIssued += 1 }

    /// The latencies as they would have been had requests kept coming while one was slow: for each that took longer than the
    /// interval, those that a client sending at that interval would have had waiting behind it are added.
    ///
    /// A closed loop stops sending while it waits ("coordinated omission"); an open one needs no correction.
    /// - Parameter intervalNanoseconds: above 0; the median time is the usual choice for a closed loop.
    func correctedLatencies(intervalNanoseconds: UInt64) -> Histogram<UInt64> {
        var corrected = Self.histogram()
        for entry in latencies.recordedValues() {
            _ = corrected.recordCorrectedValue(
                entry.value, count: entry.count, expectedInterval: max(1, intervalNanoseconds))
        }
        return corrected
    }

    /// One nanosecond to an hour, with three significant digits.
    static func histogram() -> Histogram<UInt64> {
        Histogram<UInt64>(highestTrackableValue: hour, numberOfSignificantValueDigits: .three)
    }
    private static let hour: UInt64 = 3_600_000_000_000

    private static func record(_ nanoseconds: UInt64, in histogram: inout Histogram<UInt64>) {
        _ = histogram.record(min(max(1, nanoseconds), hour))
    }
}
