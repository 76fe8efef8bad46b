import NIOHTTP1
import RecordModel
import ServiceClient

/// Sets a container's rate limit for a run, and puts back what was there.
///
/// Either goes on for a while and by any node: a run may well end while a node is down or a group elects its leader.
struct LimitChange: Sendable {
    let client: LoadClient
    let administrator: String
    let container: String
    var patience = Duration.seconds(15)
    var pause = Duration.milliseconds(500)
    /// What was set for the container itself before; null where it had the cluster's value.
    private(set) var before: [JSONValue.Member] = []

    private var path: String { "/admin/1/limits?container=\(PercentCoding.encode(container))" }

    /// Sets the limits so that the container is held to `perSecond`, however many users it has.
    /// - Parameters:
    ///   - mix: says whether the limit on records or that on preferences is meant; both where it has both.
    ///   - stop: is told what to do by hand should the process end before `putBack`.
    /// - Throws: `CommandFailure` if the limits cannot be read or set. Where it is not known whether they were set,
    ///   what was there was put back; where that failed too, the error says what to set by hand.
    mutating func set(_ perSecond: Int, for mix: LoadMix, stop: LoadStop) async throws(CommandFailure) {
        let answer = try await ask(.GET, body: [], "read")
        guard let limits = (try? answer.parsed())?["limits"]?.array else {
            throw CommandFailure("the limits of \(container) cannot be read: the answer has none")
        }
        var names: [ContainerLimit] = []
        if mix.hasRecords { names += [.requestsPerSecond, .requestsPer100kUsers] }
        if mix.hasKeyValues { names += [.keyValueRequestsPerSecond, .keyValueRequestsPer100kUsers] }
        before = names.map { JSONValue.Member($0.rawValue, Self.override(of: $0, in: limits)) }
        let growth: [ContainerLimit] = [.requestsPer100kUsers, .keyValueRequestsPer100kUsers]
        let members = names.map {
            JSONValue.Member($0.rawValue, .integer(growth.contains($0) ? 0 : Int64(perSecond)))
        }
        stop.exitNotice = "the limit that was set is still in force; \(byHand)"
        do {
            _ = try await ask(.PATCH, body: JSONValue.object(members).serialized(), "set")
        } catch {
            // The change may have been made though its answer never came.
            if error.isOutcomeUnknown { try await putBack(stop: stop) }
            stop.exitNotice = nil
            throw error
        }
    }

    /// What was set for the container itself, from an answer of `GET limits`; null where nothing was.
    static func override(of limit: ContainerLimit, in limits: [JSONValue]) -> JSONValue {
        guard let entry = limits.first(where: { $0["name"]?.string == limit.rawValue }),
            entry["source"]?.string == "container"
        else { return .null }
        return entry["value"] ?? .null
    }

    /// - Throws: `CommandFailure` that says what to set by hand.
    func putBack(stop: LoadStop) async throws(CommandFailure) {
        do {
            _ = try await ask(.PATCH, body: JSONValue.object(before).serialized(), "put back")
        } catch {
            throw CommandFailure("\(error.message); \(byHand)")
        }
        stop.exitNotice = nil
    }

    private var byHand: String {
        let values = before.map { "\($0.key)=\($0.value.isNull ? "default" : $0.value.plainText)" }
        return "put the limits of \(container) back with `zonekeeper limits set --container \(container)`: "
            + values.joined(separator: " ")
    }

    /// Asks one node after the other until one does it, every node at least once. Setting limits twice is the same as
    /// once.
    /// - Throws: `CommandFailure`, whose outcome is known where a node refused for good: then nothing was changed.
    private func ask(_ method: HTTPMethod, body: [UInt8], _ what: String) async throws(CommandFailure) -> ServiceResponse {
        let clock = ContinuousClock()
        let end = clock.now + patience
        while true {
            var problem = ""
            for target in client.targets.indices {
                let answer: ServiceResponse
                do {
                    answer = try await client.exchange(method, path, target: target, bearer: administrator, body: body)
                } catch {
                    problem = error.message
                    continue
                }
                if answer.status == 200 { return answer }
                problem = LoadPreparation.failure(answer)
                if answer.status != 429, answer.status < 500 {
                    throw CommandFailure("the limits of \(container) cannot be \(what): \(problem)")
                }
            }
            guard clock.now < end else {
                throw CommandFailure(
                    "the limits of \(container) cannot be \(what): \(problem)", isOutcomeUnknown: true)
            }
            try? await Task.sleep(for: pause)
        }
    }
}
