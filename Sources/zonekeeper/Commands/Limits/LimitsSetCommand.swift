import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper limits set`
struct LimitsSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Set limits of a container, or the defaults of the cluster.",
        discussion: """
            A value is a number, an amount such as 10GB, 2.5MB or 64MiB, `unlimited`, or `default`, which takes back what \
            was set. All are set or none. Names are those of `limits show`:

            \(ContainerLimit.allCases.map(\.rawValue).joined(separator: "\n"))
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var scope: LimitsScope

    @Argument(help: ArgumentHelp("Such as requestsPerSecond=40 or userBytes=5GB.", valueName: "name=value"))
    var limits: [String]

    func validate() throws {
        let names = try limits.map { try LimitAssignment(parsing: $0).limit }
        for (position, name) in names.enumerated() where names[..<position].contains(name) {
            throw ValidationError("\(name.rawValue) is set twice")
        }
    }

    func run() async throws {
        let assignments = try limits.map { try LimitAssignment(parsing: $0) }
        try await options.withConnection { connection in
            let body = JSONValue.object(
                assignments.map { .init($0.limit.rawValue, $0.value.map { .integer($0) } ?? .null) })
            let response = try await connection.administer(
                "PATCH", "limits", parameters: try scope.parameters(of: connection), body: body.serialized())
            if options.json { return Console.print(response.body) }
            let place = try scope.container(of: connection).map { "container \($0)" } ?? "the cluster"
            for assignment in assignments { print(Self.line(assignment, place)) }
        }
    }

    static func line(_ assignment: LimitAssignment, _ place: String) -> String {
        let name = assignment.limit.rawValue
        guard let value = assignment.value else { return "\(place): \(name) is as by default" }
        return "\(place): \(name) is \(LimitValue.text(value, assignment.limit.unit))"
    }
}
