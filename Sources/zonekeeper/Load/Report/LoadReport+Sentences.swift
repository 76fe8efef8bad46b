/// What a run says about a limit, in sentences: the summary of the terminal and of the HTML report.
extension LoadReport {
    /// Where the limit is, how exactly it was kept, how true `retryAfter` was, and what each kind of client got.
    var sentences: [String] { limitSentences + retrySentences + clientSentences + testerSentences }

    private var limitSentences: [String] {
        guard let limit else {
            let text: String =
                if throttled > 0, settings.mix.hasRecords, settings.mix.hasKeyValues {
                    "Requests were refused; records and preferences have a limit each, so their sum is not judged."
                } else if throttled > 0 {
                    "Requests were refused, but in no whole second did nodes answer more than the limit: too little to judge it."
                } else {
                    "No limit was reached: nothing was refused at \(String(sentPerSecond, digits: 1)) requests a second."
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
            "The limit is \(Self.short(limit.limit)) requests a second (\(name)); \(Self.short(Double(limit.sent) / limit.seconds))/s were offered.",
            "Accepted \(span): \(limit.accepted) in \(String(limit.seconds, digits: 2)) s, where limit x time is "
                + "\(String(limit.allowed, digits: 1)): \(String(off: (limit.ratio - 1) * 100)), burst included.",
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
        switch verdict {
        case .kept?: ["The limit was kept."]
        case .missed(let reason)?: ["The limit was NOT kept: \(reason)."]
        case .unknown(let reason)?: ["Whether the limit was kept is not known: \(reason)."]
        case nil: []
        }
    }

    private var retrySentences: [String] {
        guard truth.refusals > 0 else { return [] }
        let times =
            "retryAfter came with \(truth.refusalsWithTime) of \(truth.refusals) refusals"
            + (truth.refusalsWithTime > 0
                ? ": \(Self.time(truth.asked.milliseconds(atPercentile: 50))) in the median, "
                    + "\(Self.time(Double(truth.asked.maxNanoseconds) / 1_000_000)) at most." : ".")
        guard let share = truth.share else {
            return [times, "How true it is was not tried: --on-throttled honour sends again exactly then."]
        }
        let again =
            "\(truth.accepted) of \(truth.accepted + truth.refusedAgain) retries sent exactly then were accepted"
        let late =
            truth.lateness.milliseconds(atPercentile: 50).map {
                ", sent \(String(milliseconds: $0)) ms after that moment in the median"
            } ?? ""
        return [times, "\(again): \(String(percent: (share * 1_000).rounded() / 1_000)) true\(late)."]
    }

    private var clientSentences: [String] {
        guard truth.refusals > 0 else { return [] }
        return behaviourShares.compactMap { name, share in
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
                line += ", after \(Self.time(wait)) in the median"
            }
            return line + "."
        }
    }

    private var testerSentences: [String] {
        var lines: [String] = []
        if let reason = tester.limitReason {
            lines.append(reason.prefix(1).uppercased() + reason.dropFirst() + ".")
        } else if let capacity = tester.capacityPerSecond, seconds > 0 {
            let times = capacity / max(0.001, answeredPerSecond)
            lines.append(
                "The tester was busy for \(String(percent: (tester.busyShare * 1_000).rounded() / 1_000)) of the time; "
                    + "at that cost it could count \(Self.short(capacity.rounded())) answers a second, "
                    + "\(Self.short(times)) times what came.")
        }
        if let reason = tester.connectionReason {
            lines.append(reason.prefix(1).uppercased() + reason.dropFirst() + ".")
        }
        if let note = tester.machineNote { lines.append(note.prefix(1).uppercased() + note.dropFirst() + ".") }
        return lines
    }

    var sentPerSecond: Double { seconds > 0 ? Double(measurement.sent) / seconds : 0 }

    private var answeredPerSecond: Double { seconds > 0 ? Double(succeeded + failed) / seconds : 0 }

    static func short(_ value: Double) -> String {
        String(value, digits: value == value.rounded() || value >= 1_000 ? 0 : value < 10 ? 2 : 1)
    }

    /// A time in the unit that suits it.
    static func time(_ milliseconds: Double?) -> String {
        guard let milliseconds else { return "-" }
        return milliseconds < 1_000
            ? "\(String(milliseconds: milliseconds)) ms" : "\(String(milliseconds / 1_000, digits: 2)) s"
    }
}
