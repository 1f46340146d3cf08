import os
try:
  os.path
except A1: pass
try:
  os.path
except A2: pass
try:
  os.path
except A3: pass
try:
  os.path
except A4: pass
try:
  os.path
except A5: pass
try:
  os.path
except A6: pass
try:
  os.path
except A7: pass
try:
  os.path
except A8: pass
try:
  os.path
except A9: pass
try:
  os.path
except A10: pass
try:
  os.path
except A11: pass
try:
  os.path
except A12: pass
try:
  os.path
except A13: pass
try:
  os.path
except A14: pass
try:
  os.path
except A15: pass
try:
  os.path
except A16: pass
try:
  os.path
except A17: pass
try:
  os.path
except A18: pass
try:
  os.path
except A19: pass
try:
  os.path
except A20: pass
try:
  os.path
except A21: pass
try:
  os.path
except A22: pass
try:
  os.path
except A23: pass
try:
  os.path
except A24: pass
try:
  os.path
except A25: pass
try:
  os.path
except A26: pass
try:
  os.path
except A27: pass
try:
  os.path
except A28: pass
try:
  os.path
except A29: pass
try:
  os.path
except A30: pass
try:
  os.path
except A31: pass
try:
  os.path
except A32: pass
try:
  os.path
except A33: pass
try:
  os.path
except A34: pass
try:
  os.path
except A35: pass
try:
  os.path
except A36: pass
try:
  os.path
except A37: pass
try:
  os.path
except A38: pass
try:
  os.path
except A39: pass
try:
  os.path
except A40: pass
try:
  os.path
except A41: pass
try:
  os.path
except A42: pass
try:
  os.path
except A43: pass
try:
  os.path
except A44: pass
try:
  os.path
except A45: pass
try:
  os.path
except A46: pass
try:
  os.path
except A47: pass
try:
  os.path
except A48: pass
try:
  os.path
except A49: pass
try:
  os.path
except A50: pass
try:
  os.path
except A51: pass
try:
  os.path
except A52: pass
try:
  os.path
except A53: pass
try:
  os.path
except A54: pass
try:
  os.path
except A55: pass
try:
  os.path
except A56: pass
try:
  os.path
except A57: pass
try:
  os.path
except A58: pass
try:
  os.path
except A59: pass
try:
  os.path
except A60: pass
try:
  os.path
except A61: pass
try:
  os.path
except A62: pass
try:
  os.path
except A63: pass
try:
  os.path
except A64: pass
try:
  os.path
except A65: pass
try:
  os.path
except A66: pass
try:
  os.path
except A67: pass
try:
  os.path
except A68: pass
try:
  os.path
except A69: pass
try:
  os.path
except A70: pass
try:
  os.path
except A71: pass
try:
  os.path
except A72: pass
try:
  os.path
except A73: pass
try:
  os.path
except A74: pass
try:
  os.path
except A75: pass
try:
  os.path
except A76: pass
try:
  os.path
except A77: pass
try:
  os.path
except A78: pass
try:
  os.path
except A79: pass
try:
  os.path
except A80: pass
try:
  os.path
except A81: pass
try:
  os.path
except A82: pass
try:
  os.path
except A83: pass
try:
  os.path
except A84: pass
try:
  os.path
except A85: pass
try:
  os.path
except A86: pass
try:
  os.path
except A87: pass
try:
  os.path
except A88: pass
try:
  os.path
except A89: pass
try:
  os.path
except A90: pass
try:
  os.path
except A91: pass
try:
  os.path
except A92: pass
try:
  os.path
except A93: pass
try:
  os.path
except A94: pass
try:
  os.path
except A95: pass
try:
  os.path
except A96: pass
try:
  os.path
except A97: pass
try:
  os.path
except A98: pass
try:
  os.path
except A99: pass
try:
  os.path
except A100: pass
try:
  os.path
except A101: pass
try:
  os.path
except A102: pass
try:
  os.path
except A103: pass
try:
  os.path
except A104: pass
try:
  os.path
except A105: pass
try:
  os.path
except A106: pass
try:
  os.path
except A107: pass
try:
  os.path
except A108: pass
try:
  os.path
except A109: pass
try:
  os.path
except A110: pass
try:
  os.path
except A111: pass
try:
  os.path
except A112: pass
try:
  os.path
except A113: pass
try:
  os.path
except A114: pass
try:
  os.path
except A115: pass
try:
  os.path
except A116: pass
try:
  os.path
except A117: pass
try:
  os.path
except A118: pass
try:
  os.path
except A119: pass
try:
  os.path
except A120: pass
try:
  os.path
except A121: pass
try:
  os.path
except A122: pass
try:
  os.path
except A123: pass
try:
  os.path
except A124: pass
try:
  os.path
except A125: pass
try:
  os.path
except A126: pass
try:
  os.path
except A127: pass
try:
  os.path
except A128: pass
try:
  os.path
except A129: pass
try:
  os.path
except A130: pass
try:
  os.path
except A131: pass
try:
  os.path
except A132: pass
try:
  os.path
except A133: pass
try:
  os.path
except A134: pass
try:
  os.path
except A135: pass
try:
  os.path
except A136: pass
try:
  os.path
except A137: pass
try:
  os.path
except A138: pass
try:
  os.path
except A139: pass
try:
  os.path
except A140: pass
try:
  os.path
except A141: pass
try:
  os.path
except A142: pass
try:
  os.path
except A143: pass
try:
  os.path
except A144: pass
try:
  os.path
except A145: pass
try:
  os.path
except A146: pass
try:
  os.path
except A147: pass
try:
  os.path
except A148: pass
try:
  os.path
except A149: pass
try:
  os.path
except A150: pass
try:
  os.path
except A151: pass
try:
  os.path
except A152: pass
try:
  os.path
except A153: pass
try:
  os.path
except A154: pass
try:
  os.path
except A155: pass
try:
  os.path
except A156: pass
try:
  os.path
except A157: pass
try:
  os.path
except A158: pass
try:
  os.path
except A159: pass
try:
  os.path
except A160: pass
try:
  os.path
except A161: pass
try:
  os.path
except A162: pass
try:
  os.path
except A163: pass
try:
  os.path
except A164: pass
try:
  os.path
except A165: pass
try:
  os.path
except A166: pass
try:
  os.path
except A167: pass
try:
  os.path
except A168: pass
try:
  os.path
except A169: pass
try:
  os.path
except A170: pass
try:
  os.path
except A171: pass
try:
  os.path
except A172: pass
try:
  os.path
except A173: pass
try:
  os.path
except A174: pass
try:
  os.path
except A175: pass
try:
  os.path
except A176: pass
try:
  os.path
except A177: pass
try:
  os.path
except A178: pass
try:
  os.path
except A179: pass
try:
  os.path
except A180: pass
try:
  os.path
except A181: pass
try:
  os.path
except A182: pass
try:
  os.path
except A183: pass
try:
  os.path
except A184: pass
try:
  os.path
except A185: pass
try:
  os.path
except A186: pass
try:
  os.path
except A187: pass
try:
  os.path
except A188: pass
try:
  os.path
except A189: pass
try:
  os.path
except A190: pass
try:
  os.path
except A191: pass
try:
  os.path
except A192: pass
try:
  os.path
except A193: pass
try:
  os.path
except A194: pass
try:
  os.path
except A195: pass
try:
  os.path
except A196: pass
try:
  os.path
except A197: pass
try:
  os.path
except A198: pass
try:
  os.path
except A199: pass
try:
  os.path
except A200: pass
try:
  os.path
except A201: pass
try:
  os.path
except A202: pass
try:
  os.path
except A203: pass
try:
  os.path
except A204: pass
try:
  os.path
except A205: pass
try:
  os.path
except A206: pass
try:
  os.path
except A207: pass
try:
  os.path
except A208: pass
try:
  os.path
except A209: pass
try:
  os.path
except A210: pass
try:
  os.path
except A211: pass
try:
  os.path
except A212: pass
try:
  os.path
except A213: pass
try:
  os.path
except A214: pass
try:
  os.path
except A215: pass
try:
  os.path
except A216: pass
try:
  os.path
except A217: pass
try:
  os.path
except A218: pass
try:
  os.path
except A219: pass
try:
  os.path
except A220: pass
try:
  os.path
except A221: pass
try:
  os.path
except A222: pass
try:
  os.path
except A223: pass
try:
  os.path
except A224: pass
try:
  os.path
except A225: pass
try:
  os.path
except A226: pass
try:
  os.path
except A227: pass
try:
  os.path
except A228: pass
try:
  os.path
except A229: pass
try:
  os.path
except A230: pass
try:
  os.path
except A231: pass
try:
  os.path
except A232: pass
try:
  os.path
except A233: pass
try:
  os.path
except A234: pass
try:
  os.path
except A235: pass
try:
  os.path
except A236: pass
try:
  os.path
except A237: pass
try:
  os.path
except A238: pass
try:
  os.path
except A239: pass
try:
  os.path
except A240: pass
try:
  os.path
except A241: pass
try:
  os.path
except A242: pass
try:
  os.path
except A243: pass
try:
  os.path
except A244: pass
try:
  os.path
except A245: pass
try:
  os.path
except A246: pass
try:
  os.path
except A247: pass
try:
  os.path
except A248: pass
try:
  os.path
except A249: pass
try:
  os.path
except A250: pass
try:
  os.path
except A251: pass
try:
  os.path
except A252: pass
try:
  os.path
except A253: pass
try:
  os.path
except A254: pass
try:
  os.path
except A255: pass
try:
  os.path
except A256: pass
try:
  os.path
except A257: pass
try:
  os.path
except A258: pass
try:
  os.path
except A259: pass
try:
  os.path
except A260: pass
try:
  os.path
except A261: pass
try:
  os.path
except A262: pass
try:
  os.path
except A263: pass
try:
  os.path
except A264: pass
try:
  os.path
except A265: pass
try:
  os.path
except A266: pass
try:
  os.path
except A267: pass
try:
  os.path
except A268: pass
try:
  os.path
except A269: pass
try:
  os.path
except A270: pass
try:
  os.path
except A271: pass
try:
  os.path
except A272: pass
try:
  os.path
except A273: pass
try:
  os.path
except A274: pass
try:
  os.path
except A275: pass
try:
  os.path
except A276: pass
try:
  os.path
except A277: pass
try:
  os.path
except A278: pass
try:
  os.path
except A279: pass
try:
  os.path
except A280: pass
try:
  os.path
except A281: pass
try:
  os.path
except A282: pass
try:
  os.path
except A283: pass
try:
  os.path
except A284: pass
try:
  os.path
except A285: pass
try:
  os.path
except A286: pass
try:
  os.path
except A287: pass
try:
  os.path
except A288: pass
try:
  os.path
except A289: pass
try:
  os.path
except A290: pass
try:
  os.path
except A291: pass
try:
  os.path
except A292: pass
try:
  os.path
except A293: pass
try:
  os.path
except A294: pass
try:
  os.path
except A295: pass
try:
  os.path
except A296: pass
try:
  os.path
except A297: pass
try:
  os.path
except A298: pass
try:
  os.path
except A299: pass
try:
  os.path
except A300: pass
try:
  os.path
except A301: pass
try:
  os.path
except A302: pass
try:
  os.path
except A303: pass
try:
  os.path
except A304: pass
try:
  os.path
except A305: pass
try:
  os.path
except A306: pass
try:
  os.path
except A307: pass
try:
  os.path
except A308: pass
try:
  os.path
except A309: pass
try:
  os.path
except A310: pass
try:
  os.path
except A311: pass
try:
  os.path
except A312: pass
try:
  os.path
except A313: pass
try:
  os.path
except A314: pass
try:
  os.path
except A315: pass
try:
  os.path
except A316: pass
try:
  os.path
except A317: pass
try:
  os.path
except A318: pass
try:
  os.path
except A319: pass
try:
  os.path
except A320: pass
try:
  os.path
except A321: pass
try:
  os.path
except A322: pass
try:
  os.path
except A323: pass
try:
  os.path
except A324: pass
try:
  os.path
except A325: pass
try:
  os.path
except A326: pass
try:
  os.path
except A327: pass
try:
  os.path
except A328: pass
try:
  os.path
except A329: pass
try:
  os.path
except A330: pass
try:
  os.path
except A331: pass
try:
  os.path
except A332: pass
try:
  os.path
except A333: pass
try:
  os.path
except A334: pass
try:
  os.path
except A335: pass
try:
  os.path
except A336: pass
try:
  os.path
except A337: pass
try:
  os.path
except A338: pass
try:
  os.path
except A339: pass
try:
  os.path
except A340: pass
try:
  os.path
except A341: pass
try:
  os.path
except A342: pass
try:
  os.path
except A343: pass
try:
  os.path
except A344: pass
try:
  os.path
except A345: pass
try:
  os.path
except A346: pass
try:
  os.path
except A347: pass
try:
  os.path
except A348: pass
try:
  os.path
except A349: pass
try:
  os.path
except A350: pass
try:
  os.path
except A351: pass
try:
  os.path
except A352: pass
try:
  os.path
except A353: pass
try:
  os.path
except A354: pass
try:
  os.path
except A355: pass
try:
  os.path
except A356: pass
try:
  os.path
except A357: pass
try:
  os.path
except A358: pass
try:
  os.path
except A359: pass
try:
  os.path
except A360: pass
try:
  os.path
except A361: pass
try:
  os.path
except A362: pass
try:
  os.path
except A363: pass
try:
  os.path
except A364: pass
try:
  os.path
except A365: pass
try:
  os.path
except A366: pass
try:
  os.path
except A367: pass
try:
  os.path
except A368: pass
try:
  os.path
except A369: pass
try:
  os.path
except A370: pass
try:
  os.path
except A371: pass
try:
  os.path
except A372: pass
try:
  os.path
except A373: pass
try:
  os.path
except A374: pass
try:
  os.path
except A375: pass
try:
  os.path
except A376: pass
try:
  os.path
except A377: pass
try:
  os.path
except A378: pass
try:
  os.path
except A379: pass
try:
  os.path
except A380: pass
try:
  os.path
except A381: pass
try:
  os.path
except A382: pass
try:
  os.path
except A383: pass
try:
  os.path
except A384: pass
try:
  os.path
except A385: pass
try:
  os.path
except A386: pass
try:
  os.path
except A387: pass
try:
  os.path
except A388: pass
try:
  os.path
except A389: pass
try:
  os.path
except A390: pass
try:
  os.path
except A391: pass
try:
  os.path
except A392: pass
try:
  os.path
except A393: pass
try:
  os.path
except A394: pass
try:
  os.path
except A395: pass
try:
  os.path
except A396: pass
try:
  os.path
except A397: pass
try:
  os.path
except A398: pass
try:
  os.path
except A399: pass
try:
  os.path
except A400: pass
try:
  os.path
except A401: pass
try:
  os.path
except A402: pass
try:
  os.path
except A403: pass
try:
  os.path
except A404: pass
try:
  os.path
except A405: pass
try:
  os.path
except A406: pass
try:
  os.path
except A407: pass
try:
  os.path
except A408: pass
try:
  os.path
except A409: pass
try:
  os.path
except A410: pass
try:
  os.path
except A411: pass
try:
  os.path
except A412: pass
try:
  os.path
except A413: pass
try:
  os.path
except A414: pass
try:
  os.path
except A415: pass
try:
  os.path
except A416: pass
try:
  os.path
except A417: pass
try:
  os.path
except A418: pass
try:
  os.path
except A419: pass
try:
  os.path
except A420: pass
try:
  os.path
except A421: pass
try:
  os.path
except A422: pass
try:
  os.path
except A423: pass
try:
  os.path
except A424: pass
try:
  os.path
except A425: pass
try:
  os.path
except A426: pass
try:
  os.path
except A427: pass
try:
  os.path
except A428: pass
try:
  os.path
except A429: pass
try:
  os.path
except A430: pass
try:
  os.path
except A431: pass
try:
  os.path
except A432: pass
try:
  os.path
except A433: pass
try:
  os.path
except A434: pass
try:
  os.path
except A435: pass
try:
  os.path
except A436: pass
try:
  os.path
except A437: pass
try:
  os.path
except A438: pass
try:
  os.path
except A439: pass
try:
  os.path
except A440: pass
try:
  os.path
except A441: pass
try:
  os.path
except A442: pass
try:
  os.path
except A443: pass
try:
  os.path
except A444: pass
try:
  os.path
except A445: pass
try:
  os.path
except A446: pass
try:
  os.path
except A447: pass
try:
  os.path
except A448: pass
try:
  os.path
except A449: pass
try:
  os.path
except A450: pass
try:
  os.path
except A451: pass
try:
  os.path
except A452: pass
try:
  os.path
except A453: pass
try:
  os.path
except A454: pass
try:
  os.path
except A455: pass
try:
  os.path
except A456: pass
try:
  os.path
except A457: pass
try:
  os.path
except A458: pass
try:
  os.path
except A459: pass
try:
  os.path
except A460: pass
try:
  os.path
except A461: pass
try:
  os.path
except A462: pass
try:
  os.path
except A463: pass
try:
  os.path
except A464: pass
try:
  os.path
except A465: pass
try:
  os.path
except A466: pass
try:
  os.path
except A467: pass
try:
  os.path
except A468: pass
try:
  os.path
except A469: pass
try:
  os.path
except A470: pass
try:
  os.path
except A471: pass
try:
  os.path
except A472: pass
try:
  os.path
except A473: pass
try:
  os.path
except A474: pass
try:
  os.path
except A475: pass
try:
  os.path
except A476: pass
try:
  os.path
except A477: pass
try:
  os.path
except A478: pass
try:
  os.path
except A479: pass
try:
  os.path
except A480: pass
try:
  os.path
except A481: pass
try:
  os.path
except A482: pass
try:
  os.path
except A483: pass
try:
  os.path
except A484: pass
try:
  os.path
except A485: pass
try:
  os.path
except A486: pass
try:
  os.path
except A487: pass
try:
  os.path
except A488: pass
try:
  os.path
except A489: pass
try:
  os.path
except A490: pass
try:
  os.path
except A491: pass
try:
  os.path
except A492: pass
try:
  os.path
except A493: pass
try:
  os.path
except A494: pass
try:
  os.path
except A495: pass
try:
  os.path
except A496: pass
try:
  os.path
except A497: pass
try:
  os.path
except A498: pass
try:
  os.path
except A499: pass
try:
  os.path
except A500: pass
try:
  os.path
except A501: pass
try:
  os.path
except A502: pass
try:
  os.path
except A503: pass
try:
  os.path
except A504: pass
try:
  os.path
except A505: pass
try:
  os.path
except A506: pass
try:
  os.path
except A507: pass
try:
  os.path
except A508: pass
try:
  os.path
except A509: pass
try:
  os.path
except A510: pass
try:
  os.path
except A511: pass
try:
  os.path
except A512: pass
try:
  os.path
except A513: pass
try:
  os.path
except A514: pass
try:
  os.path
except A515: pass
try:
  os.path
except A516: pass
try:
  os.path
except A517: pass
try:
  os.path
except A518: pass
try:
  os.path
except A519: pass
try:
  os.path
except A520: pass
try:
  os.path
except A521: pass
try:
  os.path
except A522: pass
try:
  os.path
except A523: pass
try:
  os.path
except A524: pass
try:
  os.path
except A525: pass
try:
  os.path
except A526: pass
try:
  os.path
except A527: pass
try:
  os.path
except A528: pass
try:
  os.path
except A529: pass
try:
  os.path
except A530: pass
try:
  os.path
except A531: pass
try:
  os.path
except A532: pass
try:
  os.path
except A533: pass
try:
  os.path
except A534: pass
try:
  os.path
except A535: pass
try:
  os.path
except A536: pass
try:
  os.path
except A537: pass
try:
  os.path
except A538: pass
try:
  os.path
except A539: pass
try:
  os.path
except A540: pass
try:
  os.path
except A541: pass
try:
  os.path
except A542: pass
try:
  os.path
except A543: pass
try:
  os.path
except A544: pass
try:
  os.path
except A545: pass
try:
  os.path
except A546: pass
try:
  os.path
except A547: pass
try:
  os.path
except A548: pass
try:
  os.path
except A549: pass
try:
  os.path
except A550: pass
try:
  os.path
except A551: pass
try:
  os.path
except A552: pass
try:
  os.path
except A553: pass
try:
  os.path
except A554: pass
try:
  os.path
except A555: pass
try:
  os.path
except A556: pass
try:
  os.path
except A557: pass
try:
  os.path
except A558: pass
try:
  os.path
except A559: pass
try:
  os.path
except A560: pass
try:
  os.path
except A561: pass
try:
  os.path
except A562: pass
try:
  os.path
except A563: pass
try:
  os.path
except A564: pass
try:
  os.path
except A565: pass
try:
  os.path
except A566: pass
try:
  os.path
except A567: pass
try:
  os.path
except A568: pass
try:
  os.path
except A569: pass
try:
  os.path
except A570: pass
try:
  os.path
except A571: pass
try:
  os.path
except A572: pass
try:
  os.path
except A573: pass
try:
  os.path
except A574: pass
try:
  os.path
except A575: pass
try:
  os.path
except A576: pass
try:
  os.path
except A577: pass
try:
  os.path
except A578: pass
try:
  os.path
except A579: pass
try:
  os.path
except A580: pass
try:
  os.path
except A581: pass
try:
  os.path
except A582: pass
try:
  os.path
except A583: pass
try:
  os.path
except A584: pass
try:
  os.path
except A585: pass
try:
  os.path
except A586: pass
try:
  os.path
except A587: pass
try:
  os.path
except A588: pass
try:
  os.path
except A589: pass
try:
  os.path
except A590: pass
try:
  os.path
except A591: pass
try:
  os.path
except A592: pass
try:
  os.path
except A593: pass
try:
  os.path
except A594: pass
try:
  os.path
except A595: pass
try:
  os.path
except A596: pass
try:
  os.path
except A597: pass
try:
  os.path
except A598: pass
try:
  os.path
except A599: pass
try:
  os.path
except A600: pass
try:
  os.path
except A601: pass
try:
  os.path
except A602: pass
try:
  os.path
except A603: pass
try:
  os.path
except A604: pass
try:
  os.path
except A605: pass
try:
  os.path
except A606: pass
try:
  os.path
except A607: pass
try:
  os.path
except A608: pass
try:
  os.path
except A609: pass
try:
  os.path
except A610: pass
try:
  os.path
except A611: pass
try:
  os.path
except A612: pass
try:
  os.path
except A613: pass
try:
  os.path
except A614: pass
try:
  os.path
except A615: pass
try:
  os.path
except A616: pass
try:
  os.path
except A617: pass
try:
  os.path
except A618: pass
try:
  os.path
except A619: pass
try:
  os.path
except A620: pass
try:
  os.path
except A621: pass
try:
  os.path
except A622: pass
try:
  os.path
except A623: pass
try:
  os.path
except A624: pass
try:
  os.path
except A625: pass
try:
  os.path
except A626: pass
try:
  os.path
except A627: pass
try:
  os.path
except A628: pass
try:
  os.path
except A629: pass
try:
  os.path
except A630: pass
try:
  os.path
except A631: pass
try:
  os.path
except A632: pass
try:
  os.path
except A633: pass
try:
  os.path
except A634: pass
try:
  os.path
except A635: pass
try:
  os.path
except A636: pass
try:
  os.path
except A637: pass
try:
  os.path
except A638: pass
try:
  os.path
except A639: pass
try:
  os.path
except A640: pass
try:
  os.path
except A641: pass
try:
  os.path
except A642: pass
try:
  os.path
except A643: pass
try:
  os.path
except A644: pass
try:
  os.path
except A645: pass
try:
  os.path
except A646: pass
try:
  os.path
except A647: pass
try:
  os.path
except A648: pass
try:
  os.path
except A649: pass
try:
  os.path
except A650: pass
try:
  os.path
except A651: pass
try:
  os.path
except A652: pass
try:
  os.path
except A653: pass
try:
  os.path
except A654: pass
try:
  os.path
except A655: pass
try:
  os.path
except A656: pass
try:
  os.path
except A657: pass
try:
  os.path
except A658: pass
try:
  os.path
except A659: pass
try:
  os.path
except A660: pass
try:
  os.path
except A661: pass
try:
  os.path
except A662: pass
try:
  os.path
except A663: pass
try:
  os.path
except A664: pass
try:
  os.path
except A665: pass
try:
  os.path
except A666: pass
try:
  os.path
except A667: pass
try:
  os.path
except A668: pass
try:
  os.path
except A669: pass
try:
  os.path
except A670: pass
try:
  os.path
except A671: pass
try:
  os.path
except A672: pass
try:
  os.path
except A673: pass
try:
  os.path
except A674: pass
try:
  os.path
except A675: pass
try:
  os.path
except A676: pass
try:
  os.path
except A677: pass
try:
  os.path
except A678: pass
try:
  os.path
except A679: pass
try:
  os.path
except A680: pass
try:
  os.path
except A681: pass
try:
  os.path
except A682: pass
try:
  os.path
except A683: pass
try:
  os.path
except A684: pass
try:
  os.path
except A685: pass
try:
  os.path
except A686: pass
try:
  os.path
except A687: pass
try:
  os.path
except A688: pass
try:
  os.path
except A689: pass
try:
  os.path
except A690: pass
try:
  os.path
except A691: pass
try:
  os.path
except A692: pass
try:
  os.path
except A693: pass
try:
  os.path
except A694: pass
try:
  os.path
except A695: pass
try:
  os.path
except A696: pass
try:
  os.path
except A697: pass
try:
  os.path
except A698: pass
try:
  os.path
except A699: pass
try:
  os.path
except A700: pass
try:
  os.path
except A701: pass
try:
  os.path
except A702: pass
try:
  os.path
except A703: pass
try:
  os.path
except A704: pass
try:
  os.path
except A705: pass
try:
  os.path
except A706: pass
try:
  os.path
except A707: pass
try:
  os.path
except A708: pass
try:
  os.path
except A709: pass
try:
  os.path
except A710: pass
try:
  os.path
except A711: pass
try:
  os.path
except A712: pass
try:
  os.path
except A713: pass
try:
  os.path
except A714: pass
try:
  os.path
except A715: pass
try:
  os.path
except A716: pass
try:
  os.path
except A717: pass
try:
  os.path
except A718: pass
try:
  os.path
except A719: pass
try:
  os.path
except A720: pass
try:
  os.path
except A721: pass
try:
  os.path
except A722: pass
try:
  os.path
except A723: pass
try:
  os.path
except A724: pass
try:
  os.path
except A725: pass
try:
  os.path
except A726: pass
try:
  os.path
except A727: pass
try:
  os.path
except A728: pass
try:
  os.path
except A729: pass
try:
  os.path
except A730: pass
try:
  os.path
except A731: pass
try:
  os.path
except A732: pass
try:
  os.path
except A733: pass
try:
  os.path
except A734: pass
try:
  os.path
except A735: pass
try:
  os.path
except A736: pass
try:
  os.path
except A737: pass
try:
  os.path
except A738: pass
try:
  os.path
except A739: pass
try:
  os.path
except A740: pass
try:
  os.path
except A741: pass
try:
  os.path
except A742: pass
try:
  os.path
except A743: pass
try:
  os.path
except A744: pass
try:
  os.path
except A745: pass
try:
  os.path
except A746: pass
try:
  os.path
except A747: pass
try:
  os.path
except A748: pass
try:
  os.path
except A749: pass
try:
  os.path
except A750: pass
try:
  os.path
except A751: pass
try:
  os.path
except A752: pass
try:
  os.path
except A753: pass
try:
  os.path
except A754: pass
try:
  os.path
except A755: pass
try:
  os.path
except A756: pass
try:
  os.path
except A757: pass
try:
  os.path
except A758: pass
try:
  os.path
except A759: pass
try:
  os.path
except A760: pass
try:
  os.path
except A761: pass
try:
  os.path
except A762: pass
try:
  os.path
except A763: pass
try:
  os.path
except A764: pass
try:
  os.path
except A765: pass
try:
  os.path
except A766: pass
try:
  os.path
except A767: pass
try:
  os.path
except A768: pass
try:
  os.path
except A769: pass
try:
  os.path
except A770: pass
try:
  os.path
except A771: pass
try:
  os.path
except A772: pass
try:
  os.path
except A773: pass
try:
  os.path
except A774: pass
try:
  os.path
except A775: pass
try:
  os.path
except A776: pass
try:
  os.path
except A777: pass
try:
  os.path
except A778: pass
try:
  os.path
except A779: pass
try:
  os.path
except A780: pass
try:
  os.path
except A781: pass
try:
  os.path
except A782: pass
try:
  os.path
except A783: pass
try:
  os.path
except A784: pass
try:
  os.path
except A785: pass
try:
  os.path
except A786: pass
try:
  os.path
except A787: pass
try:
  os.path
except A788: pass
try:
  os.path
except A789: pass
try:
  os.path
except A790: pass
try:
  os.path
except A791: pass
try:
  os.path
except A792: pass
try:
  os.path
except A793: pass
try:
  os.path
except A794: pass
try:
  os.path
except A795: pass
try:
  os.path
except A796: pass
try:
  os.path
except A797: pass
try:
  os.path
except A798: pass
try:
  os.path
except A799: pass
try:
  os.path
except A800: pass
try:
  os.path
except A801: pass
try:
  os.path
except A802: pass
try:
  os.path
except A803: pass
try:
  os.path
except A804: pass
try:
  os.path
except A805: pass
try:
  os.path
except A806: pass
try:
  os.path
except A807: pass
try:
  os.path
except A808: pass
try:
  os.path
except A809: pass
try:
  os.path
except A810: pass
try:
  os.path
except A811: pass
try:
  os.path
except A812: pass
try:
  os.path
except A813: pass
try:
  os.path
except A814: pass
try:
  os.path
except A815: pass
try:
  os.path
except A816: pass
try:
  os.path
except A817: pass
try:
  os.path
except A818: pass
try:
  os.path
except A819: pass
try:
  os.path
except A820: pass
try:
  os.path
except A821: pass
try:
  os.path
except A822: pass
try:
  os.path
except A823: pass
try:
  os.path
except A824: pass
try:
  os.path
except A825: pass
try:
  os.path
except A826: pass
try:
  os.path
except A827: pass
try:
  os.path
except A828: pass
try:
  os.path
except A829: pass
try:
  os.path
except A830: pass
try:
  os.path
except A831: pass
try:
  os.path
except A832: pass
try:
  os.path
except A833: pass
try:
  os.path
except A834: pass
try:
  os.path
except A835: pass
try:
  os.path
except A836: pass
try:
  os.path
except A837: pass
try:
  os.path
except A838: pass
try:
  os.path
except A839: pass
try:
  os.path
except A840: pass
try:
  os.path
except A841: pass
try:
  os.path
except A842: pass
try:
  os.path
except A843: pass
try:
  os.path
except A844: pass
try:
  os.path
except A845: pass
try:
  os.path
except A846: pass
try:
  os.path
except A847: pass
try:
  os.path
except A848: pass
try:
  os.path
except A849: pass
try:
  os.path
except A850: pass
try:
  os.path
except A851: pass
try:
  os.path
except A852: pass
try:
  os.path
except A853: pass
try:
  os.path
except A854: pass
try:
  os.path
except A855: pass
try:
  os.path
except A856: pass
try:
  os.path
except A857: pass
try:
  os.path
except A858: pass
try:
  os.path
except A859: pass
try:
  os.path
except A860: pass
try:
  os.path
except A861: pass
try:
  os.path
except A862: pass
try:
  os.path
except A863: pass
try:
  os.path
except A864: pass
try:
  os.path
except A865: pass
try:
  os.path
except A866: pass
try:
  os.path
except A867: pass
try:
  os.path
except A868: pass
try:
  os.path
except A869: pass
try:
  os.path
except A870: pass
try:
  os.path
except A871: pass
try:
  os.path
except A872: pass
try:
  os.path
except A873: pass
try:
  os.path
except A874: pass
try:
  os.path
except A875: pass
try:
  os.path
except A876: pass
try:
  os.path
except A877: pass
try:
  os.path
except A878: pass
try:
  os.path
except A879: pass
try:
  os.path
except A880: pass
try:
  os.path
except A881: pass
try:
  os.path
except A882: pass
try:
  os.path
except A883: pass
try:
  os.path
except A884: pass
try:
  os.path
except A885: pass
try:
  os.path
except A886: pass
try:
  os.path
except A887: pass
try:
  os.path
except A888: pass
try:
  os.path
except A889: pass
try:
  os.path
except A890: pass
try:
  os.path
except A891: pass
try:
  os.path
except A892: pass
try:
  os.path
except A893: pass
try:
  os.path
except A894: pass
try:
  os.path
except A895: pass
try:
  os.path
except A896: pass
try:
  os.path
except A897: pass
try:
  os.path
except A898: pass
try:
  os.path
except A899: pass
try:
  os.path
except A900: pass
try:
  os.path
except A901: pass
try:
  os.path
except A902: pass
try:
  os.path
except A903: pass
try:
  os.path
except A904: pass
try:
  os.path
except A905: pass
try:
  os.path
except A906: pass
try:
  os.path
except A907: pass
try:
  os.path
except A908: pass
try:
  os.path
except A909: pass
try:
  os.path
except A910: pass
try:
  os.path
except A911: pass
try:
  os.path
except A912: pass
try:
  os.path
except A913: pass
try:
  os.path
except A914: pass
try:
  os.path
except A915: pass
try:
  os.path
except A916: pass
try:
  os.path
except A917: pass
try:
  os.path
except A918: pass
try:
  os.path
except A919: pass
try:
  os.path
except A920: pass
try:
  os.path
except A921: pass
try:
  os.path
except A922: pass
try:
  os.path
except A923: pass
try:
  os.path
except A924: pass
try:
  os.path
except A925: pass
try:
  os.path
except A926: pass
try:
  os.path
except A927: pass
try:
  os.path
except A928: pass
try:
  os.path
except A929: pass
try:
  os.path
except A930: pass
try:
  os.path
except A931: pass
try:
  os.path
except A932: pass
try:
  os.path
except A933: pass
try:
  os.path
except A934: pass
try:
  os.path
except A935: pass
try:
  os.path
except A936: pass
try:
  os.path
except A937: pass
try:
  os.path
except A938: pass
try:
  os.path
except A939: pass
try:
  os.path
except A940: pass
try:
  os.path
except A941: pass
try:
  os.path
except A942: pass
try:
  os.path
except A943: pass
try:
  os.path
except A944: pass
try:
  os.path
except A945: pass
try:
  os.path
except A946: pass
try:
  os.path
except A947: pass
try:
  os.path
except A948: pass
try:
  os.path
except A949: pass
try:
  os.path
except A950: pass
try:
  os.path
except A951: pass
try:
  os.path
except A952: pass
try:
  os.path
except A953: pass
try:
  os.path
except A954: pass
try:
  os.path
except A955: pass
try:
  os.path
except A956: pass
try:
  os.path
except A957: pass
try:
  os.path
except A958: pass
try:
  os.path
except A959: pass
try:
  os.path
except A960: pass
try:
  os.path
except A961: pass
try:
  os.path
except A962: pass
try:
  os.path
except A963: pass
try:
  os.path
except A964: pass
try:
  os.path
except A965: pass
try:
  os.path
except A966: pass
try:
  os.path
except A967: pass
try:
  os.path
except A968: pass
try:
  os.path
except A969: pass
try:
  os.path
except A970: pass
try:
  os.path
except A971: pass
try:
  os.path
except A972: pass
try:
  os.path
except A973: pass
try:
  os.path
except A974: pass
try:
  os.path
except A975: pass
try:
  os.path
except A976: pass
try:
  os.path
except A977: pass
try:
  os.path
except A978: pass
try:
  os.path
except A979: pass
try:
  os.path
except A980: pass
try:
  os.path
except A981: pass
try:
  os.path
except A982: pass
try:
  os.path
except A983: pass
try:
  os.path
except A984: pass
try:
  os.path
except A985: pass
try:
  os.path
except A986: pass
try:
  os.path
except A987: pass
try:
  os.path
except A988: pass
try:
  os.path
except A989: pass
try:
  os.path
except A990: pass
try:
  os.path
except A991: pass
try:
  os.path
except A992: pass
try:
  os.path
except A993: pass
try:
  os.path
except A994: pass
try:
  os.path
except A995: pass
try:
  os.path
except A996: pass
try:
  os.path
except A997: pass
try:
  os.path
except A998: pass
try:
  os.path
except A999: pass
try:
  os.path
except A1000: pass
try:
  os.path
except A1001: pass
try:
  os.path
except A1002: pass
try:
  os.path
except A1003: pass
try:
  os.path
except A1004: pass
try:
  os.path
except A1005: pass
try:
  os.path
except A1006: pass
try:
  os.path
except A1007: pass
try:
  os.path
except A1008: pass
try:
  os.path
except A1009: pass
try:
  os.path
except A1010: pass
try:
  os.path
except A1011: pass
try:
  os.path
except A1012: pass
try:
  os.path
except A1013: pass
try:
  os.path
except A1014: pass
try:
  os.path
except A1015: pass
try:
  os.path
except A1016: pass
try:
  os.path
except A1017: pass
try:
  os.path
except A1018: pass
try:
  os.path
except A1019: pass
try:
  os.path
except A1020: pass
try:
  os.path
except A1021: pass
try:
  os.path
except A1022: pass
try:
  os.path
except A1023: pass
try:
  os.path
except A1024: pass
try:
  os.path
except A1025: pass
try:
  os.path
except A1026: pass
try:
  os.path
except A1027: pass
try:
  os.path
except A1028: pass
try:
  os.path
except A1029: pass
try:
  os.path
except A1030: pass
try:
  os.path
except A1031: pass
try:
  os.path
except A1032: pass
try:
  os.path
except A1033: pass
try:
  os.path
except A1034: pass
try:
  os.path
except A1035: pass
try:
  os.path
except A1036: pass
try:
  os.path
except A1037: pass
try:
  os.path
except A1038: pass
try:
  os.path
except A1039: pass
try:
  os.path
except A1040: pass
try:
  os.path
except A1041: pass
try:
  os.path
except A1042: pass
try:
  os.path
except A1043: pass
try:
  os.path
except A1044: pass
try:
  os.path
except A1045: pass
try:
  os.path
except A1046: pass
try:
  os.path
except A1047: pass
try:
  os.path
except A1048: pass
try:
  os.path
except A1049: pass
try:
  os.path
except A1050: pass
try:
  os.path
except A1051: pass
try:
  os.path
except A1052: pass
try:
  os.path
except A1053: pass
try:
  os.path
except A1054: pass
try:
  os.path
except A1055: pass
try:
  os.path
except A1056: pass
try:
  os.path
except A1057: pass
try:
  os.path
except A1058: pass
try:
  os.path
except A1059: pass
try:
  os.path
except A1060: pass
try:
  os.path
except A1061: pass
try:
  os.path
except A1062: pass
try:
  os.path
except A1063: pass
try:
  os.path
except A1064: pass
try:
  os.path
except A1065: pass
try:
  os.path
except A1066: pass
try:
  os.path
except A1067: pass
try:
  os.path
except A1068: pass
try:
  os.path
except A1069: pass
try:
  os.path
except A1070: pass
try:
  os.path
except A1071: pass
try:
  os.path
except A1072: pass
try:
  os.path
except A1073: pass
try:
  os.path
except A1074: pass
try:
  os.path
except A1075: pass
try:
  os.path
except A1076: pass
try:
  os.path
except A1077: pass
try:
  os.path
except A1078: pass
try:
  os.path
except A1079: pass
try:
  os.path
except A1080: pass
try:
  os.path
except A1081: pass
try:
  os.path
except A1082: pass
try:
  os.path
except A1083: pass
try:
  os.path
except A1084: pass
try:
  os.path
except A1085: pass
try:
  os.path
except A1086: pass
try:
  os.path
except A1087: pass
try:
  os.path
except A1088: pass
try:
  os.path
except A1089: pass
try:
  os.path
except A1090: pass
try:
  os.path
except A1091: pass
try:
  os.path
except A1092: pass
try:
  os.path
except A1093: pass
try:
  os.path
except A1094: pass
try:
  os.path
except A1095: pass
try:
  os.path
except A1096: pass
try:
  os.path
except A1097: pass
try:
  os.path
except A1098: pass
try:
  os.path
except A1099: pass
try:
  os.path
except A1100: pass
try:
  os.path
except A1101: pass
try:
  os.path
except A1102: pass
try:
  os.path
except A1103: pass
try:
  os.path
except A1104: pass
try:
  os.path
except A1105: pass
try:
  os.path
except A1106: pass
try:
  os.path
except A1107: pass
try:
  os.path
except A1108: pass
try:
  os.path
except A1109: pass
try:
  os.path
except A1110: pass
try:
  os.path
except A1111: pass
try:
  os.path
except A1112: pass
try:
  os.path
except A1113: pass
try:
  os.path
except A1114: pass
try:
  os.path
except A1115: pass
try:
  os.path
except A1116: pass
try:
  os.path
except A1117: pass
try:
  os.path
except A1118: pass
try:
  os.path
except A1119: pass
try:
  os.path
except A1120: pass
try:
  os.path
except A1121: pass
try:
  os.path
except A1122: pass
try:
  os.path
except A1123: pass
try:
  os.path
except A1124: pass
try:
  os.path
except A1125: pass
try:
  os.path
except A1126: pass
try:
  os.path
except A1127: pass
try:
  os.path
except A1128: pass
try:
  os.path
except A1129: pass
try:
  os.path
except A1130: pass
try:
  os.path
except A1131: pass
try:
  os.path
except A1132: pass
try:
  os.path
except A1133: pass
try:
  os.path
except A1134: pass
try:
  os.path
except A1135: pass
try:
  os.path
except A1136: pass
try:
  os.path
except A1137: pass
try:
  os.path
except A1138: pass
try:
  os.path
except A1139: pass
try:
  os.path
except A1140: pass
try:
  os.path
except A1141: pass
try:
  os.path
except A1142: pass
try:
  os.path
except A1143: pass
try:
  os.path
except A1144: pass
try:
  os.path
except A1145: pass
try:
  os.path
except A1146: pass
try:
  os.path
except A1147: pass
try:
  os.path
except A1148: pass
try:
  os.path
except A1149: pass
try:
  os.path
except A1150: pass
try:
  os.path
except A1151: pass
try:
  os.path
except A1152: pass
try:
  os.path
except A1153: pass
try:
  os.path
except A1154: pass
try:
  os.path
except A1155: pass
try:
  os.path
except A1156: pass
try:
  os.path
except A1157: pass
try:
  os.path
except A1158: pass
try:
  os.path
except A1159: pass
try:
  os.path
except A1160: pass
try:
  os.path
except A1161: pass
try:
  os.path
except A1162: pass
try:
  os.path
except A1163: pass
try:
  os.path
except A1164: pass
try:
  os.path
except A1165: pass
try:
  os.path
except A1166: pass
try:
  os.path
except A1167: pass
try:
  os.path
except A1168: pass
try:
  os.path
except A1169: pass
try:
  os.path
except A1170: pass
try:
  os.path
except A1171: pass
try:
  os.path
except A1172: pass
try:
  os.path
except A1173: pass
try:
  os.path
except A1174: pass
try:
  os.path
except A1175: pass
try:
  os.path
except A1176: pass
try:
  os.path
except A1177: pass
try:
  os.path
except A1178: pass
try:
  os.path
except A1179: pass
try:
  os.path
except A1180: pass
try:
  os.path
except A1181: pass
try:
  os.path
except A1182: pass
try:
  os.path
except A1183: pass
try:
  os.path
except A1184: pass
try:
  os.path
except A1185: pass
try:
  os.path
except A1186: pass
try:
  os.path
except A1187: pass
try:
  os.path
except A1188: pass
try:
  os.path
except A1189: pass
try:
  os.path
except A1190: pass
try:
  os.path
except A1191: pass
try:
  os.path
except A1192: pass
try:
  os.path
except A1193: pass
try:
  os.path
except A1194: pass
try:
  os.path
except A1195: pass
try:
  os.path
except A1196: pass
try:
  os.path
except A1197: pass
try:
  os.path
except A1198: pass
try:
  os.path
except A1199: pass
try:
  os.path
except A1200: pass
try:
  os.path
except A1201: pass
try:
  os.path
except A1202: pass
try:
  os.path
except A1203: pass
try:
  os.path
except A1204: pass
try:
  os.path
except A1205: pass
try:
  os.path
except A1206: pass
try:
  os.path
except A1207: pass
try:
  os.path
except A1208: pass
try:
  os.path
except A1209: pass
try:
  os.path
except A1210: pass
try:
  os.path
except A1211: pass
try:
  os.path
except A1212: pass
try:
  os.path
except A1213: pass
try:
  os.path
except A1214: pass
try:
  os.path
except A1215: pass
try:
  os.path
except A1216: pass
try:
  os.path
except A1217: pass
try:
  os.path
except A1218: pass
try:
  os.path
except A1219: pass
try:
  os.path
except A1220: pass
try:
  os.path
except A1221: pass
try:
  os.path
except A1222: pass
try:
  os.path
except A1223: pass
try:
  os.path
except A1224: pass
try:
  os.path
except A1225: pass
try:
  os.path
except A1226: pass
try:
  os.path
except A1227: pass
try:
  os.path
except A1228: pass
try:
  os.path
except A1229: pass
try:
  os.path
except A1230: pass
try:
  os.path
except A1231: pass
try:
  os.path
except A1232: pass
try:
  os.path
except A1233: pass
try:
  os.path
except A1234: pass
try:
  os.path
except A1235: pass
try:
  os.path
except A1236: pass
try:
  os.path
except A1237: pass
try:
  os.path
except A1238: pass
try:
  os.path
except A1239: pass
try:
  os.path
except A1240: pass
try:
  os.path
except A1241: pass
try:
  os.path
except A1242: pass
try:
  os.path
except A1243: pass
try:
  os.path
except A1244: pass
try:
  os.path
except A1245: pass
try:
  os.path
except A1246: pass
try:
  os.path
except A1247: pass
try:
  os.path
except A1248: pass
try:
  os.path
except A1249: pass
try:
  os.path
except A1250: pass
try:
  os.path
except A1251: pass
try:
  os.path
except A1252: pass
try:
  os.path
except A1253: pass
try:
  os.path
except A1254: pass
try:
  os.path
except A1255: pass
try:
  os.path
except A1256: pass
try:
  os.path
except A1257: pass
try:
  os.path
except A1258: pass
try:
  os.path
except A1259: pass
try:
  os.path
except A1260: pass
try:
  os.path
except A1261: pass
try:
  os.path
except A1262: pass
try:
  os.path
except A1263: pass
try:
  os.path
except A1264: pass
try:
  os.path
except A1265: pass
try:
  os.path
except A1266: pass
try:
  os.path
except A1267: pass
try:
  os.path
except A1268: pass
try:
  os.path
except A1269: pass
try:
  os.path
except A1270: pass
try:
  os.path
except A1271: pass
try:
  os.path
except A1272: pass
try:
  os.path
except A1273: pass
try:
  os.path
except A1274: pass
try:
  os.path
except A1275: pass
try:
  os.path
except A1276: pass
try:
  os.path
except A1277: pass
try:
  os.path
except A1278: pass
try:
  os.path
except A1279: pass
try:
  os.path
except A1280: pass
try:
  os.path
except A1281: pass
try:
  os.path
except A1282: pass
try:
  os.path
except A1283: pass
try:
  os.path
except A1284: pass
try:
  os.path
except A1285: pass
try:
  os.path
except A1286: pass
try:
  os.path
except A1287: pass
try:
  os.path
except A1288: pass
try:
  os.path
except A1289: pass
try:
  os.path
except A1290: pass
try:
  os.path
except A1291: pass
try:
  os.path
except A1292: pass
try:
  os.path
except A1293: pass
try:
  os.path
except A1294: pass
try:
  os.path
except A1295: pass
try:
  os.path
except A1296: pass
try:
  os.path
except A1297: pass
try:
  os.path
except A1298: pass
try:
  os.path
except A1299: pass
try:
  os.path
except A1300: pass
try:
  os.path
except A1301: pass
try:
  os.path
except A1302: pass
try:
  os.path
except A1303: pass
try:
  os.path
except A1304: pass
try:
  os.path
except A1305: pass
try:
  os.path
except A1306: pass
try:
  os.path
except A1307: pass
try:
  os.path
except A1308: pass
try:
  os.path
except A1309: pass
try:
  os.path
except A1310: pass
try:
  os.path
except A1311: pass
try:
  os.path
except A1312: pass
try:
  os.path
except A1313: pass
try:
  os.path
except A1314: pass
try:
  os.path
except A1315: pass
try:
  os.path
except A1316: pass
try:
  os.path
except A1317: pass
try:
  os.path
except A1318: pass
try:
  os.path
except A1319: pass
try:
  os.path
except A1320: pass
try:
  os.path
except A1321: pass
try:
  os.path
except A1322: pass
try:
  os.path
except A1323: pass
try:
  os.path
except A1324: pass
try:
  os.path
except A1325: pass
try:
  os.path
except A1326: pass
try:
  os.path
except A1327: pass
try:
  os.path
except A1328: pass
try:
  os.path
except A1329: pass
try:
  os.path
except A1330: pass
try:
  os.path
except A1331: pass
try:
  os.path
except A1332: pass
try:
  os.path
except A1333: pass
try:
  os.path
except A1334: pass
try:
  os.path
except A1335: pass
try:
  os.path
except A1336: pass
try:
  os.path
except A1337: pass
try:
  os.path
except A1338: pass
try:
  os.path
except A1339: pass
try:
  os.path
except A1340: pass
try:
  os.path
except A1341: pass
try:
  os.path
except A1342: pass
try:
  os.path
except A1343: pass
try:
  os.path
except A1344: pass
try:
  os.path
except A1345: pass
try:
  os.path
except A1346: pass
try:
  os.path
except A1347: pass
try:
  os.path
except A1348: pass
try:
  os.path
except A1349: pass
try:
  os.path
except A1350: pass
try:
  os.path
except A1351: pass
try:
  os.path
except A1352: pass
try:
  os.path
except A1353: pass
try:
  os.path
except A1354: pass
try:
  os.path
except A1355: pass
try:
  os.path
except A1356: pass
try:
  os.path
except A1357: pass
try:
  os.path
except A1358: pass
try:
  os.path
except A1359: pass
try:
  os.path
except A1360: pass
try:
  os.path
except A1361: pass
try:
  os.path
except A1362: pass
try:
  os.path
except A1363: pass
try:
  os.path
except A1364: pass
try:
  os.path
except A1365: pass
try:
  os.path
except A1366: pass
try:
  os.path
except A1367: pass
try:
  os.path
except A1368: pass
try:
  os.path
except A1369: pass
try:
  os.path
except A1370: pass
try:
  os.path
except A1371: pass
try:
  os.path
except A1372: pass
try:
  os.path
except A1373: pass
try:
  os.path
except A1374: pass
try:
  os.path
except A1375: pass
try:
  os.path
except A1376: pass
try:
  os.path
except A1377: pass
try:
  os.path
except A1378: pass
try:
  os.path
except A1379: pass
try:
  os.path
except A1380: pass
try:
  os.path
except A1381: pass
try:
  os.path
except A1382: pass
try:
  os.path
except A1383: pass
try:
  os.path
except A1384: pass
try:
  os.path
except A1385: pass
try:
  os.path
except A1386: pass
try:
  os.path
except A1387: pass
try:
  os.path
except A1388: pass
try:
  os.path
except A1389: pass
try:
  os.path
except A1390: pass
try:
  os.path
except A1391: pass
try:
  os.path
except A1392: pass
try:
  os.path
except A1393: pass
try:
  os.path
except A1394: pass
try:
  os.path
except A1395: pass
try:
  os.path
except A1396: pass
try:
  os.path
except A1397: pass
try:
  os.path
except A1398: pass
try:
  os.path
except A1399: pass
try:
  os.path
except A1400: pass
try:
  os.path
except A1401: pass
try:
  os.path
except A1402: pass
try:
  os.path
except A1403: pass
try:
  os.path
except A1404: pass
try:
  os.path
except A1405: pass
try:
  os.path
except A1406: pass
try:
  os.path
except A1407: pass
try:
  os.path
except A1408: pass
try:
  os.path
except A1409: pass
try:
  os.path
except A1410: pass
try:
  os.path
except A1411: pass
try:
  os.path
except A1412: pass
try:
  os.path
except A1413: pass
try:
  os.path
except A1414: pass
try:
  os.path
except A1415: pass
try:
  os.path
except A1416: pass
try:
  os.path
except A1417: pass
try:
  os.path
except A1418: pass
try:
  os.path
except A1419: pass
try:
  os.path
except A1420: pass
try:
  os.path
except A1421: pass
try:
  os.path
except A1422: pass
try:
  os.path
except A1423: pass
try:
  os.path
except A1424: pass
try:
  os.path
except A1425: pass
try:
  os.path
except A1426: pass
try:
  os.path
except A1427: pass
try:
  os.path
except A1428: pass
try:
  os.path
except A1429: pass
try:
  os.path
except A1430: pass
try:
  os.path
except A1431: pass
try:
  os.path
except A1432: pass
try:
  os.path
except A1433: pass
try:
  os.path
except A1434: pass
try:
  os.path
except A1435: pass
try:
  os.path
except A1436: pass
try:
  os.path
except A1437: pass
try:
  os.path
except A1438: pass
try:
  os.path
except A1439: pass
try:
  os.path
except A1440: pass
try:
  os.path
except A1441: pass
try:
  os.path
except A1442: pass
try:
  os.path
except A1443: pass
try:
  os.path
except A1444: pass
try:
  os.path
except A1445: pass
try:
  os.path
except A1446: pass
try:
  os.path
except A1447: pass
try:
  os.path
except A1448: pass
try:
  os.path
except A1449: pass
try:
  os.path
except A1450: pass
try:
  os.path
except A1451: pass
try:
  os.path
except A1452: pass
try:
  os.path
except A1453: pass
try:
  os.path
except A1454: pass
try:
  os.path
except A1455: pass
try:
  os.path
except A1456: pass
try:
  os.path
except A1457: pass
try:
  os.path
except A1458: pass
try:
  os.path
except A1459: pass
try:
  os.path
except A1460: pass
try:
  os.path
except A1461: pass
try:
  os.path
except A1462: pass
try:
  os.path
except A1463: pass
try:
  os.path
except A1464: pass
try:
  os.path
except A1465: pass
try:
  os.path
except A1466: pass
try:
  os.path
except A1467: pass
try:
  os.path
except A1468: pass
try:
  os.path
except A1469: pass
try:
  os.path
except A1470: pass
try:
  os.path
except A1471: pass
try:
  os.path
except A1472: pass
try:
  os.path
except A1473: pass
try:
  os.path
except A1474: pass
try:
  os.path
except A1475: pass
try:
  os.path
except A1476: pass
try:
  os.path
except A1477: pass
try:
  os.path
except A1478: pass
try:
  os.path
except A1479: pass
try:
  os.path
except A1480: pass
try:
  os.path
except A1481: pass
try:
  os.path
except A1482: pass
try:
  os.path
except A1483: pass
try:
  os.path
except A1484: pass
try:
  os.path
except A1485: pass
try:
  os.path
except A1486: pass
try:
  os.path
except A1487: pass
try:
  os.path
except A1488: pass
try:
  os.path
except A1489: pass
try:
  os.path
except A1490: pass
try:
  os.path
except A1491: pass
try:
  os.path
except A1492: pass
try:
  os.path
except A1493: pass
try:
  os.path
except A1494: pass
try:
  os.path
except A1495: pass
try:
  os.path
except A1496: pass
try:
  os.path
except A1497: pass
try:
  os.path
except A1498: pass
try:
  os.path
except A1499: pass
os.