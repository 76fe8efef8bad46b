extension LoadReport {
    /// One line for each second of the run, under a line of names; times in milliseconds, empty where nothing was accepted.
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
