import ArgumentParser
import RecordModel

/// `zonekeeper sample-places`: what `scripts/up` imports.
struct SamplePlacesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sample-places",
        abstract: "Print the places of the time zone database as JSON lines for `record import`.", shouldDisplay: false)

    @Argument(help: "The table of the tzdata package.")
    var file = "/usr/share/zoneinfo/zone1970.tab"

    func run() async throws {
        for line in try InputFile.read(file).split(separator: "\n") {
            if let place = try SamplePlaces.place(line) { Console.print(place.serialized()) }
        }
    }
}
