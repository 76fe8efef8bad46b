import Foundation
import RecordModel
import Testing

@testable import zonekeeper

@Suite("Places of the time zone database")
struct PlacesTests {
    @Test(
        "A position in the short form of ISO 6709 is degrees",
        arguments: [
            ("+4230+00131", 42.5, 1.5166666666666666), ("-0012-07820", -0.2, -78.33333333333333),
            ("+404251-0740023", 40.714166666666664, -74.00638888888889), ("+9000+18000", 90.0, 180.0),
        ] as [(String, Double, Double)])
    func positions(text: String, latitude: Double, longitude: Double) throws {
        let position = try #require(ISO6709.degrees(text))
        #expect(abs(position.latitude - latitude) < 1e-12)
        #expect(abs(position.longitude - longitude) < 1e-12)
    }

    @Test(
        "Text that is no position is none",
        arguments: [
            "", "+", "+4230", "4230+00131", "+4230+0131", "+42300+00131", "+4230+0013100", "+423000+00131",
            "+9001+00000",
            "+0000+18001", "+4260+00131", "+423060+0013100", "+42x0+00131", "+4230+00131+1",
        ])
    func noPositions(text: String) {
        #expect(ISO6709.degrees(text) == nil)
    }

    @Test("A line is a place named after its time zone")
    func lines() throws {
        let place = try #require(try SamplePlaces.place("AE,OM\t+2518+05518\tAsia/Dubai\tCrozet"))
        #expect(place["recordName"] == .string("place-Asia_Dubai"))
        #expect(place["code"] == .string("AE,OM"))
        #expect(place["timeZone"] == .string("Asia/Dubai"))
        #expect(place["comment"] == .string("Crozet"))
        #expect(place["coordinates"]?["latitude"] == .number(25.3))
        #expect(try SamplePlaces.place("AD\t+4230+00131\tEurope/Andorra")?["comment"] == nil)
        #expect(try SamplePlaces.place("# a comment") == nil)
        #expect(throws: CommandFailure.self) { try SamplePlaces.place("AD\t+4230+0131\tEurope/Andorra") }
        #expect(throws: CommandFailure.self) { try SamplePlaces.place("AD Europe/Andorra") }
    }

    @Test("Every line of this system's table is a place, each with a name of its own")
    func systemTable() throws {
        let path = "/usr/share/zoneinfo/zone1970.tab"
        try #require(FileManager.default.fileExists(atPath: path), "install tzdata")
        let places = try InputFile.read(path).split(separator: "\n").compactMap { try SamplePlaces.place($0) }
        #expect(places.count > 300)
        #expect(Set(places.map { $0.text("recordName") }).count == places.count)
    }
}
