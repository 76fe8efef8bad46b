import ArgumentParser
import Foundation
import RecordModel
import ServiceClient
import Storage

/// A file that a run's results go to; the end of its name says in which form.
struct ReportFile: ExpressibleByArgument, Hashable {
    enum Form: String, Hashable {
        case json, csv, html
    }

    let path: String
    let form: Form

    /// - Returns: nil where the name ends neither in `.json` nor in `.csv` nor in `.html`.
    init?(argument: String) {
        guard let dot = argument.lastIndex(of: "."),
            let form = Form(rawValue: argument[argument.index(after: dot)...].lowercased())
        else { return nil }
        path = argument
        self.form = form
    }

    /// What is written first; it takes the file's place when it is whole, so that a report of an earlier run is there
    /// until then.
    private var draft: String { path + ".draft" }

    /// Whether there is a terminal, a pipe or another thing by that name that cannot be replaced.
    private var isSpecial: Bool { isSpecialFile(at: path) }

    /// Makes the draft and removes it, so that a name that cannot be written is known before the run and not after it.
    func check() throws(CommandFailure) {
        let descriptor = open(isSpecial ? path : draft, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw CommandFailure("\(path) cannot be written: \(String(cString: strerror(errno)))")
        }
        Foundation.close(descriptor)
        if !isSpecial { unlink(draft) }
    }

    /// - Throws: `CommandFailure` where it cannot be written; what was there before is still there then.
    func write(_ report: LoadReport) throws(CommandFailure) {
        let bytes: [UInt8] =
            switch form {
            case .json: report.json + Array("\n".utf8)
            case .csv: Array(report.csv.utf8)
            case .html: Array(report.html(date: Times.text(WallClock.now)).utf8)
            }
        do {
            let isSpecial = isSpecial
            try Data(bytes).write(to: URL(fileURLWithPath: isSpecial ? path : draft))
            if !isSpecial, rename(draft, path) != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        } catch {
            unlink(draft)
            throw CommandFailure("\(path) cannot be written: \(error.localizedDescription)")
        }
    }
}

extension LoadReport {
    /// One line for each second of the run, under a line of names; times in milliseconds, empty where nothing was
    /// accepted.
    var csv: String {
        var lines = ["second,due,sent,accepted,throttled,failed,unanswered,p50,p90,p99,max"]
        for (index, second) in measurement.timeline.seconds.enumerated() {
            let counts = [second.sent, second.accepted, second.throttled, second.failed, second.unanswered]
            let times = [second.p50, second.p90, second.p99, second.max].map { $0.map { String($0, digits: 3) } ?? "" }
            lines.append((["\(index)", due(in: index)] + counts.map(String.init) + times).joined(separator: ","))
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// Requests a second that the profile has in the middle of a second; empty in a closed loop.
    private func due(in second: Int) -> String {
        guard case .open(let profile, _, _) = settings.pace else { return "" }
        return String(profile.rate(at: Double(second) + 0.5), digits: 2)
    }
}

extension JSONValue {
    fileprivate static func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }

    /// Nil where the number is not known, so that the member is left out.
    fileprivate static func known(_ number: Double?) -> JSONValue? { number.map { .number($0) } }
}

// The report for programs. Times are in milliseconds, what is not known is left out or says why.
extension LoadReport {
    var json: [UInt8] {
        let head = [
            request, figures, .members(["errors": errors, "per1000Operations": costs]), limitMembers,
            .members([
                "retryAfter": retries, "clients": Self.shares(behaviourShares),
                "operations": Self.shares(operationShares),
                "nodes": Self.shares(nodeShares), "tester": testerMembers, "timeline": timeline,
                "summary": .strings(sentences),
            ]),
        ]
        return JSONValue.object(head.flatMap(\.members)).serialized()
    }

    private var request: JSONValue {
        let pace: JSONValue
        switch settings.pace {
        case .closed(let concurrency):
            pace = .members(["loop": .string("closed"), "concurrency": .count(concurrency)])
        case .open(let profile, let spacing, let outstandingMax):
            pace = .members([
                "loop": .string("open"), "rate": .number(profile.rateMax), "profile": .string(profile.name),
                "arrivals": .string(spacing.rawValue), "outstandingMax": .count(outstandingMax),
            ])
        }
        let (place, hasRecords) = (settings.place, settings.mix.hasRecords)
        let rest = JSONValue.members([
            "connections": .count(settings.connections), "seed": .integer(Int64(bitPattern: settings.seed)),
            "container": .string(place.container), "environment": .string(place.environment),
            "database": hasRecords ? .string(place.database) : nil, "zone": hasRecords ? .string(place.zones[0]) : nil,
            "zones": hasRecords ? .count(place.zones.count) : nil,
            "recordType": hasRecords ? .string(settings.recordType) : nil, "users": .count(settings.users),
            "nodePattern": .string(settings.nodes.name),
            "records": settings.mix.needsRecords ? .count(settings.records) : nil, "targets": .strings(targets),
        ])
        return .object([JSONValue.Member("operation", .string(settings.mix.name))] + pace.members + rest.members)
    }

    private var figures: JSONValue {
        .members([
            "seconds": .number(seconds), "interrupted": .bool(wasInterrupted), "succeeded": .count(succeeded),
            "failed": .count(failed), "throttled": .count(throttled), "unanswered": .count(unanswered),
            "notIssued": .count(notIssued), "operationsPerSecond": .number(operationsPerSecond),
            "assetBytes": settings.mix.hasAssets ? .count(settings.assetBytes) : nil,
            "assetBytesPerSecond": .known(assetBytesPerSecond),
            "latencyMilliseconds": latency?.json, "correctedLatencyMilliseconds": correctedLatency?.json,
            "failureLatencyMilliseconds": failureLatency?.json, "generatorLatenessMilliseconds": lateness?.json,
        ])
    }

    private var errors: JSONValue {
        .members([
            "byCode": .object(errorsByCode.map { .init($0.code, .count($0.count)) }),
            "firstReasons": .object(
                errorsByCode.compactMap { error in error.reason.map { .init(error.code, .string($0)) } }),
            "byStatus": .object(errorsByStatus.map { .init("\($0.status)", .count($0.count)) }),
            "byTransport": .object(errorsByTransport.map { .init($0.reason, .count($0.count)) }),
        ])
    }

    private var costs: JSONValue {
        let generator = JSONValue.known(per1000(generatorCPUSeconds))
        switch cost {
        case .unknown(let reason):
            return .members(["nodesUnknownBecause": .string(reason), "generatorCPUSeconds": generator])
        case .measured(let cost, let nodes):
            return .members([
                "nodes": .count(nodes), "logSyncs": .known(per1000(cost.logSyncs)),
                "logBytesWritten": .known(per1000(cost.logBytesWritten)),
                "cpuSeconds": .known(per1000(cost.cpuSeconds)), "generatorCPUSeconds": generator,
            ])
        }
    }

    private var limitMembers: JSONValue {
        .members([
            "limit": limit.map { limit in
                .members([
                    "requestsPerSecond": .number(limit.limit), "source": .string(limit.source.rawValue),
                    "begin": .number(limit.begin), "seconds": .number(limit.seconds),
                    "isWholeRun": .bool(limit.isWholeRun), "offered": .count(limit.sent),
                    "accepted": .count(limit.accepted), "allowed": .number(limit.allowed),
                    "allowedMax": .number(limit.allowedMax), "acceptedOfAllowed": .number(limit.ratio),
                    "acceptedInOneSecondMax": limit.acceptedInOneSecondMax.map { .count($0) },
                    "acceptedInTenSecondsMax": limit.acceptedInTenSecondsMax.map { .count($0) },
                ])
            }, "verdict": verdict.map { .string($0.kind.rawValue) },
            "verdictReason": .given(verdict?.reason),
        ])
    }

    private var retries: JSONValue? {
        guard retryAfter.refusals > 0 else { return nil }
        let asked = retryAfter.asked
        return .members([
            "refusals": .count(retryAfter.refusals), "refusalsWithTime": .count(retryAfter.refusalsWithTime),
            "askedMillisecondsP50": .known(asked.milliseconds(atPercentile: 50)),
            "askedMillisecondsMax": .known(asked.milliseconds(atPercentile: 100)),
            "exactRetries": .count(retryAfter.answered), "accepted": .count(retryAfter.accepted),
            "refusedAgain": .count(retryAfter.refusedAgain), "acceptedShare": .known(retryAfter.share),
            "sentLateMillisecondsP50": .known(retryAfter.lateness.milliseconds(atPercentile: 50)),
        ])
    }

    private static func shares(_ shares: [(name: String, share: LoadShare)]) -> JSONValue {
        .array(
            shares.map { name, share in
                .members([
                    "name": .string(name), "requests": .count(share.requests), "attempts": .count(share.attempts),
                    "accepted": .count(share.accepted), "throttled": .count(share.throttled),
                    "failed": .count(share.failed), "unanswered": .count(share.unanswered),
                    "p50": .known(share.latencies.milliseconds(atPercentile: 50)),
                    "p99": .known(share.latencies.milliseconds(atPercentile: 99)),
                    "waitP50": .known(share.waits.milliseconds(atPercentile: 50)),
                ])
            })
    }

    private var testerMembers: JSONValue {
        .members([
            "cpuSeconds": .number(tester.cpuSeconds), "busyShare": .number(tester.busyShare),
            "capacityPerSecond": .known(tester.capacityPerSecond), "machineIdleShare": .known(tester.machineIdleShare),
            "connectionWaitMillisecondsP99": .known(tester.connectionWaitP99Milliseconds),
            "isLimit": .bool(tester.limitReason != nil || tester.connectionReason != nil),
        ])
    }

    private var timeline: JSONValue {
        .array(
            measurement.timeline.seconds.enumerated().map { index, second in
                .members([
                    "second": .count(index), "sent": .count(second.sent), "accepted": .count(second.accepted),
                    "throttled": .count(second.throttled), "failed": .count(second.failed),
                    "unanswered": .count(second.unanswered), "p50": .known(second.p50), "p90": .known(second.p90),
                    "p99": .known(second.p99), "max": .known(second.max),
                ])
            })
    }
}

extension LoadReport.Latency {
    fileprivate var json: JSONValue {
        .object([.init("count", .count(count))] + zip(Self.names, values).map { .init($0, .number($1)) })
    }
}
