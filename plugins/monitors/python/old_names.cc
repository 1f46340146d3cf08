// Names that the library had in Python 2 or in an older version of Python 3. A text that runs under
// both may have them in front of the condition that chooses: sys.maxint if PY2 else sys.maxsize.
// While such a condition may still come they are not refused. Lists do not offer them.
#include <algorithm>
#include <array>
#include <utility>

#include "plugins/monitors/python/symbol_table.h"

namespace pawl::monitors::python {
namespace {

using Entry = std::pair<std::string_view, std::string_view>;

// Of a module, or of a class "module:Class". Sorted.
constexpr std::array<Entry, 38> kOldNames = {{
    {"array:array", "fromstring tostring write"},
    {"ast",
     "Bytes Ellipsis ExtSlice Index NameConstant Num Print Exec Repr Str TryExcept "
     "TryFinally"},
    {"asyncio", "JoinableQueue async coroutine get_event_loop_policy"},
    {"base64", "decodestring encodestring"},
    {"builtins:BaseException", "message"},
    {"builtins:bytes", "encode format isdecimal isnumeric"},
    {"builtins:dict", "has_key iteritems iterkeys itervalues viewitems viewkeys viewvalues"},
    {"builtins:str", "decode"},
    {"cgi", "escape parse_qs parse_qsl"},
    {"collections",
     "Awaitable ByteString Callable Container Coroutine Generator Hashable "
     "ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping "
     "MutableSequence MutableSet Sequence Set Sized ValuesView"},
    {"configparser", "SafeConfigParser"},
    {"fractions", "gcd"},
    {"gettext", "lgettext ldgettext"},
    {"html.parser:HTMLParser", "unescape"},
    {"importlib", "find_loader"},
    {"inspect", "formatargspec getargspec getmoduleinfo"},
    {"io", "OpenWrapper"},
    {"itertools", "ifilter ifilterfalse imap izip izip_longest"},
    {"locale", "format"},
    {"operator",
     "delslice div getslice idiv isCallable isMappingType isNumberType "
     "isSequenceType irepeat repeat sequenceIncludes setslice"},
    {"os", "errno getcwdu popen2 popen3 popen4 tempnam tmpfile tmpnam"},
    {"os.path", "walk"},
    {"platform", "dist linux_distribution popen"},
    {"plistlib", "Data Plist readPlist readPlistFromBytes writePlist writePlistToBytes"},
    {"posixpath", "walk"},
    {"random", "WichmannHill jumpahead"},
    {"re", "Scanner template sre_parse"},
    {"socket", "ssl sslerror"},
    {"ssl", "match_hostname wrap_socket PROTOCOL_SSLv3"},
    {"string",
     "atof atof_error atoi atol count expandtabs find index join joinfields letters "
     "ljust lower lowercase lstrip maketrans replace rfind rindex rjust rsplit rstrip "
     "split splitfields strip swapcase translate upper uppercase zfill"},
    {"sys",
     "callstats exc_clear exc_type exc_value exc_traceback exitfunc getcheckinterval "
     "last_exc maxint py3kwarning setcheckinterval set_coroutine_wrapper subversion"},
    {"threading:Thread", "isAlive"},
    {"time", "clock"},
    {"types",
     "BooleanType BufferType ClassType ComplexType DictType DictionaryType FileType FloatType "
     "InstanceType IntType ListType LongType NoneType ObjectType SliceType StringType "
     "StringTypes TupleType TypeType UnboundMethodType UnicodeType XRangeType"},
    {"typing", "GenericMeta io re"},
    {"unittest.case:TestCase",
     "assertDictContainsSubset assertEquals assertItemsEqual assertNotEquals "
     "assertNotRegexpMatches assertRaisesRegexp assertRegexpMatches assert_ failIf failUnless "
     "failUnlessEqual failUnlessRaises"},
    {"urllib",
     "ContentTooShortError FancyURLopener URLopener getproxies pathname2url quote "
     "quote_plus splittype unquote unquote_plus url2pathname urlcleanup urlencode "
     "urlopen urlretrieve"},
    {"xml.etree.ElementTree:Element", "getchildren getiterator"},
}};

}  // namespace

void AddOldNames(std::string_view owner, std::vector<std::string>& names) {
  const auto* found = std::ranges::lower_bound(kOldNames, owner, {}, &Entry::first);
  if (found == kOldNames.end() || found->first != owner) return;
  for (std::string_view rest = found->second; !rest.empty();) {
    const size_t space = std::min(rest.find(' '), rest.size());
    names.emplace_back(rest.substr(0, space));
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
}

}  // namespace pawl::monitors::python
