import RecordModel

extension LoadReport {
    /// The report for programs. Times are in milliseconds, what is not known is left out or says why.
    var json: [UInt8] {
        var writer = JSONWriter(capacity: 2_048)
        writer.object { writer in
            writeRequest(to: &writer)
            writer.member("seconds", number: seconds)
            writer.member("interrupted", wasInterrupted)
            writer.member("succeeded", integer: Int64(succeeded))
            writer.member("failed", integer: Int64(failed))
            writer.member("throttled", integer: Int64(throttled))
            writer.member("unanswered", integer: Int64(unanswered))
            writer.member("notIssued", integer: Int64(notIssued))
            writer.member("operationsPerSecond", number: operationsPerSecond)
            Self.write("latencyMilliseconds", latency, to: &writer)
            Self.write("correctedLatencyMilliseconds", correctedLatency, to: &writer)
            Self.write("failureLatencyMilliseconds", failureLatency, to: &writer)
            Self.write("generatorLatenessMilliseconds", lateness, to: &writer)
            writeErrors(to: &writer)
            writeCost(to: &writer)
            writeLimit(to: &writer)
            writeRetries(to: &writer)
            Self.write("clients", behaviourShares, to: &writer)
            Self.write("operations", operationShares, to: &writer)
            Self.write("nodes", nodeShares, to: &writer)
            writeTester(to: &writer)
            writeTimeline(to: &writer)
            writer.key("summary")
            writer.array { writer in for sentence in sentences { writer.string(sentence) } }
        }
        return writer.bytes
    }

    private func writeRequest(to writer: inout JSONWriter) {
        writer.member("operation", settings.mix.name)
        switch settings.pace {
        case .closed(let concurrency):
            writer.member("loop", "closed")
            writer.member("concurrency", integer: Int64(concurrency))
        case .open(let profile, let spacing, let outstandingMax):
            writer.member("loop", "open")
            writer.member("rate", number: profile.rateMax)
            writer.member("profile", profile.name)
            writer.member("arrivals", spacing.rawValue)
            writer.member("outstandingMax", integer: Int64(outstandingMax))
        }
        writer.member("connections", integer: Int64(settings.connections))
        writer.member("seed", integer: Int64(bitPattern: settings.seed))
        writer.member("container", settings.place.container)
        writer.member("environment", settings.place.environment)
        if settings.mix.hasRecords {
            writer.member("database", settings.place.database)
            writer.member("zone", settings.place.zones[0])
            writer.member("zones", integer: Int64(settings.place.zones.count))
            writer.member("recordType", settings.recordType)
        }
        writer.member("users", integer: Int64(settings.users))
        writer.member("nodePattern", settings.nodes.name)
        if settings.mix.needsRecords { writer.member("records", integer: Int64(settings.records)) }
        writer.key("targets")
        writer.array { writer in for target in targets { writer.string(target) } }
    }

    private static func write(_ key: String, _ latency: Latency?, to writer: inout JSONWriter) {
        guard let latency else { return }
        writer.key(key)
        writer.object { writer in
            writer.member("count", integer: Int64(latency.count))
            writer.member("p50", number: latency.p50)
            writer.member("p90", number: latency.p90)
            writer.member("p99", number: latency.p99)
            writer.member("p99.9", number: latency.p999)
            writer.member("max", number: latency.max)
            writer.member("mean", number: latency.mean)
        }
    }

    private func writeErrors(to writer: inout JSONWriter) {
        writer.key("errors")
        writer.object { writer in
            writer.key("byCode")
            writer.object { writer in
                for error in errorsByCode { writer.member(error.code, integer: Int64(error.count)) }
            }
            writer.key("firstReasons")
            writer.object { writer in
                for error in errorsByCode { if let reason = error.reason { writer.member(error.code, reason) } }
            }
            writer.key("byStatus")
            writer.object { writer in
                for error in errorsByStatus { writer.member("\(error.status)", integer: Int64(error.count)) }
            }
            writer.key("byTransport")
            writer.object { writer in
                for error in errorsByTransport { writer.member(error.reason, integer: Int64(error.count)) }
            }
        }
    }

    private func writeCost(to writer: inout JSONWriter) {
        writer.key("per1000Operations")
        writer.object { writer in
            switch cost {
            case .unknown(let reason): writer.member("nodesUnknownBecause", reason)
            case .measured(let cost, let nodes):
                writer.member("nodes", integer: Int64(nodes))
                if let value = per1000(cost.logSyncs) { writer.member("logSyncs", number: value) }
                if let value = per1000(cost.logBytesWritten) { writer.member("logBytesWritten", number: value) }
                if let value = per1000(cost.cpuSeconds) { writer.member("cpuSeconds", number: value) }
            }
            if let value = per1000(generatorCPUSeconds) { writer.member("generatorCPUSeconds", number: value) }
        }
    }
}
