import RaftCore

/// A message in one line.
func describe(_ message: Message) -> String {
    let route = "\(message.from)->\(message.to) term \(message.term)"
    switch message.body {
    case .preVoteRequest(let last): return "\(route) pre-vote request, log \(last)"
    case .preVoteResponse(let granted): return "\(route) pre-vote \(granted ? "yes" : "no")"
    case .voteRequest(let last, let isTransfer):
        return "\(route) vote request, log \(last)\(isTransfer ? ", transfer" : "")"
    case .voteResponse(let granted): return "\(route) vote \(granted ? "yes" : "no")"
    case .appendRequest(let request):
        let entries = request.entries.map(\.position.description).joined(separator: " ")
        return "\(route) append after \(request.previous) [\(entries)] commit \(request.commit)"
    case .appendResponse(.accepted(let match)): return "\(route) accepted \(match)"
    case .appendResponse(.rejected(let previous, let hint)): return "\(route) rejected \(previous), hint \(hint)"
    case .heartbeatRequest(let commit, let round): return "\(route) heartbeat \(round) commit \(commit)"
    case .heartbeatResponse(let round): return "\(route) heartbeat answer \(round)"
    case .timeoutNow: return "\(route) timeout now"
    }
}
