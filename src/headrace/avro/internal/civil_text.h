// Dates and times as text, as they stand in Avro strings. Free functions, any thread; each answers false when the text is none or names a
// day or time that does not exist.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::avro {

/// YYYY-[M]M-[D]D as days since 1970-01-01; years 0001 to 9999.
bool ParseCivilDate(std::string_view text, int64_t* days);
/// [H]H:[M]M:[S]S[.F] with up to six digits of fraction, as microseconds.
bool ParseCivilTime(std::string_view text, int64_t* micros);
/// A date, then T or a space and a time, or nothing: microseconds since 1970-01-01T00:00:00.
bool ParseCivilDatetime(std::string_view text, int64_t* micros);
/// An instant with up to twelve digits of fraction and a zone (Z or an offset) as YYYY-MM-DDTHH:MM:SS.FFFFFFFFFFFFZ.
bool NormalizePicos(std::string_view text, std::string* normal);
/// The same form of an instant in units of 1 s / `per_second`.
void FormatPicos(int64_t value, int64_t per_second, std::string* normal);

}  // namespace headrace::avro
