import ArgumentParser
import RecordModel
import ServiceClient

/// A command that asks a cluster.
protocol ClientCommand: AsyncParsableCommand {
    var options: ClientOptions { get }

    /// Does what the command is for; the connection is closed afterwards.
    func run(on connection: Connection) async throws
}

extension ClientCommand {
    func run() async throws { try await options.withConnection(run(on:)) }

    /// Prints an answer: as the server sent it with `--json`, else as people read it.
    func show(_ response: ServiceResponse, _ text: @autoclosure () throws -> String) throws {
        if options.json { Console.print(response.body) } else { print(try text()) }
    }

    /// The same for what was put together from several answers.
    func show(_ json: @autoclosure () -> JSONValue, _ text: @autoclosure () throws -> String) throws {
        if options.json { Console.print(json().serialized()) } else { print(try text()) }
    }
}
