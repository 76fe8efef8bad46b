import RecordModel

/// What the JSON report says about limits, retries, clients and the tester.
extension LoadReport {
    func writeLimit(to writer: inout JSONWriter) {
        guard let limit else {
            writeVerdict(to: &writer)
            return
        }
        writer.key("limit")
        writer.object { writer in
            writer.member("requestsPerSecond", number: limit.limit)
            writer.member("source", limit.source.rawValue)
            writer.member("begin", number: limit.begin)
            writer.member("seconds", number: limit.seconds)
            writer.member("isWholeRun", limit.isWholeRun)
            writer.member("offered", integer: Int64(limit.sent))
            writer.member("accepted", integer: Int64(limit.accepted))
            writer.member("allowed", number: limit.allowed)
            writer.member("acceptedOfAllowed", number: limit.ratio)
            if let most = limit.acceptedInOneSecondMax {
                writer.member("acceptedInOneSecondMax", integer: Int64(most))
            }
            if let most = limit.acceptedInTenSecondsMax {
                writer.member("acceptedInTenSecondsMax", integer: Int64(most))
            }
        }
        writeVerdict(to: &writer)
    }

    private func writeVerdict(to writer: inout JSONWriter) {
        guard let verdict else { return }
        writer.member("verdict", verdict.name)
        if let reason = verdict.reason { writer.member("verdictReason", reason) }
    }

    func writeRetries(to writer: inout JSONWriter) {
        guard truth.refusals > 0 else { return }
        writer.key("retryAfter")
        writer.object { writer in
            writer.member("refusals", integer: Int64(truth.refusals))
            writer.member("refusalsWithTime", integer: Int64(truth.refusalsWithTime))
            if let median = truth.asked.milliseconds(atPercentile: 50) {
                writer.member("askedMillisecondsP50", number: median)
                writer.member("askedMillisecondsMax", number: Double(truth.asked.maxNanoseconds) / 1_000_000)
            }
            writer.member("exactRetries", integer: Int64(truth.answered))
            writer.member("accepted", integer: Int64(truth.accepted))
            writer.member("refusedAgain", integer: Int64(truth.refusedAgain))
            if let share = truth.share { writer.member("acceptedShare", number: share) }
            if let late = truth.lateness.milliseconds(atPercentile: 50) {
                writer.member("sentLateMillisecondsP50", number: late)
            }
        }
    }

    static func write(_ key: String, _ shares: [(name: String, share: LoadShare)], to writer: inout JSONWriter) {
        writer.key(key)
        writer.array { writer in
            for (name, share) in shares {
                writer.object { writer in
                    writer.member("name", name)
                    writer.member("requests", integer: Int64(share.requests))
                    writer.member("attempts", integer: Int64(share.attempts))
                    writer.member("accepted", integer: Int64(share.accepted))
                    writer.member("throttled", integer: Int64(share.throttled))
                    writer.member("failed", integer: Int64(share.failed))
                    writer.member("unanswered", integer: Int64(share.unanswered))
                    for (name, percentile) in [("p50", 50.0), ("p99", 99)] {
                        if let value = share.latencies.milliseconds(atPercentile: percentile) {
                            writer.member(name, number: value)
                        }
                    }
                    if let wait = share.waits.milliseconds(atPercentile: 50) { writer.member("waitP50", number: wait) }
                }
            }
        }
    }

    func writeTester(to writer: inout JSONWriter) {
        writer.key("tester")
        writer.object { writer in
            writer.member("cpuSeconds", number: tester.cpuSeconds)
            writer.member("busyShare", number: tester.busyShare)
            if let capacity = tester.capacityPerSecond { writer.member("capacityPerSecond", number: capacity) }
            if let idle = tester.machineIdleShare { writer.member("machineIdleShare", number: idle) }
            if let wait = tester.connectionWaitP99Milliseconds {
                writer.member("connectionWaitMillisecondsP99", number: wait)
            }
            writer.member("isLimit", tester.limitReason != nil || tester.connectionReason != nil)
        }
    }

    func writeTimeline(to writer: inout JSONWriter) {
        writer.key("timeline")
        writer.array { writer in
            for (index, second) in measurement.timeline.seconds.enumerated() {
                writer.object { writer in
                    writer.member("second", integer: Int64(index))
                    writer.member("sent", integer: Int64(second.sent))
                    writer.member("accepted", integer: Int64(second.accepted))
                    writer.member("throttled", integer: Int64(second.throttled))
                    writer.member("failed", integer: Int64(second.failed))
                    writer.member("unanswered", integer: Int64(second.unanswered))
                    let latencies = [
                        ("p50", second.p50), ("p90", second.p90), ("p99", second.p99), ("max", second.max),
                    ]
                    for case (let name, let value?) in latencies { writer.member(name, number: value) }
                }
            }
        }
    }
}
