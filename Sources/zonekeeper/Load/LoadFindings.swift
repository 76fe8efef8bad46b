import RecordModel

/// What a run says about a limit, in sentences: the summary of the terminal and of the HTML report.
struct LoadFindings {
    let report: LoadReport

    /// Where the limit is, how exactly it was kept, how true `retryAfter` was, and what each kind of client got.
    var sentences: [String] { limitSentences + retrySentences + clientSentences + testerSentences }

    private var limitSentences: [String] {
        guard let limit = report.limit else {
            let text: String =
                if report.throttled > 0, report.settings.mix.hasRecords, report.settings.mix.hasKeyValues {
                    "Requests were refused; records and preferences have a limit each, so their sum is not judged."
                } else if report.throttled > 0 {
                    "Requests were refused, but in no whole second did nodes answer more than the limit: too little "
                        + "to judge it."
                } else {
                    "No limit was reached: nothing was refused at \(String(report.sentPerSecond, digits: 1)) requests a "
                        + "second."
                }
            return [text] + verdictSentence
        }
        let name =
            switch limit.source {
            case .given: "given"
            case .announced: "as the nodes announce it"
            case .estimated: "estimated from what was accepted, as nobody said it"
            }
        let span =
            limit.isWholeRun ? "in the whole run" : "from second \(Int(limit.begin)) on, while nodes answered more"
        var lines = [
            "The limit is \(String(short: limit.limit)) requests a second (\(name)); "
                + "\(String(short: Double(limit.sent) / limit.seconds))/s were offered.",
            "Accepted \(span): \(limit.accepted) in \(String(limit.seconds, digits: 2)) s; limit x time is "
                + "\(String(limit.allowed, digits: 1)) (\(String(off: (limit.ratio - 1) * 100))), limit x (time + 1 s) "
                + "\(String(limit.allowedMax, digits: 1)).",
        ]
        var bursts: [String] = []
        if let most = limit.acceptedInOneSecondMax { bursts.append("\(most) in any second") }
        if let most = limit.acceptedInTenSecondsMax { bursts.append("\(most) in any ten") }
        if !bursts.isEmpty {
            lines.append(
                "At most \(bursts.joined(separator: ", ")) were accepted, counted from tenth to tenth of a second.")
        }
        return lines + verdictSentence
    }

    private var verdictSentence: [String] {
        guard let verdict = report.verdict else { return [] }
        let reason = verdict.reason.map { ": \($0)" } ?? ""
        return switch verdict.kind {
        case .kept: ["The limit was kept."]
        case .missed: ["The limit was NOT kept\(reason)."]
        case .unknown: ["Whether the limit was kept is not known\(reason)."]
        }
    }

    private var retrySentences: [String] {
        let retryAfter = report.retryAfter
        guard retryAfter.refusals > 0 else { return [] }
        let times =
            "retryAfter came with \(retryAfter.refusalsWithTime) of \(retryAfter.refusals) refusals"
            + (retryAfter.refusalsWithTime > 0
                ? ": \(String(time: retryAfter.asked.milliseconds(atPercentile: 50))) in the median, "
                    + "\(String(time: retryAfter.asked.milliseconds(atPercentile: 100))) at most." : ".")
        guard let share = retryAfter.share else {
            return [times, "How true it is was not tried: --on-throttled honour sends again exactly then."]
        }
        let again =
            "\(retryAfter.accepted) of \(retryAfter.accepted + retryAfter.refusedAgain) retries sent exactly then "
            + "were accepted"
        let late =
            retryAfter.lateness.milliseconds(atPercentile: 50).map {
                ", sent \(String(milliseconds: $0)) ms after that moment in the median"
            } ?? ""
        return [times, "\(again): \(String(percent: (share * 1_000).rounded() / 1_000)) true\(late)."]
    }

    private var clientSentences: [String] {
        guard report.retryAfter.refusals > 0 else { return [] }
        return report.behaviourShares.compactMap { name, share in
            guard let part = share.acceptedShare else { return nil }
            let who: String =
                switch name {
                case ThrottleBehaviour.ignore.rawValue: "Clients that ignore it"
                case ThrottleBehaviour.honour.rawValue: "Clients that honour it"
                default: "Clients that back off by themselves"
                }
            var line =
                "\(who) got \(share.accepted) of \(share.requests) requests through "
                + "(\(String(percent: (part * 1_000).rounded() / 1_000))) with \(share.attempts) attempts"
            if name != ThrottleBehaviour.ignore.rawValue, let wait = share.waits.milliseconds(atPercentile: 50) {
                line += ", after \(String(time: wait)) in the median"
            }
            return line + "."
        }
    }

    private var testerSentences: [String] {
        let tester = report.tester
        var lines: [String] = []
        if let reason = tester.limitReason {
            lines.append(reason)
        } else if let capacity = tester.capacityPerSecond, report.seconds > 0 {
            let times = capacity / max(0.001, answeredPerSecond)
            lines.append(
                "The tester was busy for \(String(percent: (tester.busyShare * 1_000).rounded() / 1_000)) of the time; "
                    + "at that cost it could count \(String(short: capacity.rounded())) answers a second, "
                    + "\(String(short: times)) times what came")
        }
        lines += [tester.connectionReason, tester.machineNote].compactMap(\.self)
        return lines.map { $0.prefix(1).uppercased() + $0.dropFirst() + "." }
    }

    private var answeredPerSecond: Double {
        report.seconds > 0 ? Double(report.succeeded + report.failed) / report.seconds : 0
    }
}
